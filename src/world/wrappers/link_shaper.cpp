#include "world/wrappers/link_shaper.h"

#include <sys/prctl.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "world/channels.h"

namespace echelon {

namespace {

constexpr double forever = std::numeric_limits<double>::infinity();
constexpr double slice = 0.1;  // seconds after which a pause looks whether it is still wanted

// Far from those that programs count upwards from the first, and from the last ones of world/channels.h.
Channel marker_channel(Channel channel) { return channel ^ 0x80000000; }

}  // namespace

LinkShaper::LinkShaper(World& inner, const LinkLimit& limit)
    : inner_(inner), limit_(limit), queued_(inner.make_event()), left_(inner.make_event()) {
  link_ = inner.spawn("link", [this] {
    if (inner_.place().threads) prctl(PR_SET_TIMERSLACK, 1000);  // ns: to wake in time, not 50 us later
    run_link();
  });
}

LinkShaper::~LinkShaper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queued_->notify();
  link_.reset();
}

double LinkShaper::seconds_for(std::size_t bytes) const {
  return limit_.bytes_per_second > 0 ? static_cast<double>(bytes) / limit_.bytes_per_second : 0;
}

LinkShaper::Shaped& LinkShaper::take() {
  if (!idle_) {
    idle_ = &pool_.emplace_back();
    idle_->shaper = this;
  }
  Shaped& message = *std::exchange(idle_, idle_->next);
  message.next = nullptr;
  message.abandoned = message.arrived = false;
  return message;
}

void LinkShaper::give_back(Shaped& message) {
  message.next = idle_;
  idle_ = &message;
}

// ---- out

Work LinkShaper::send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) {
  invariant(to >= 0 && to < inner_.size(), "the other side of a message is a rank of this world");
  const double now = inner_.now();
  Work inner = inner_.send(to, channel, label, bytes);
  Shaped* message;
  {
    const std::lock_guard lock(mutex_);
    message = &take();
    message->inner = std::move(inner);
    message->sends = true;
    message->to = to;
    message->channel = channel;
    message->label = label;
    message->ticket = tickets_++;
    out_free_ = std::max(out_free_, now) + seconds_for(bytes.size());
    message->leaves_at = out_free_ + limit_.latency;
    (last_ ? last_->next : first_) = message;
    last_ = message;
  }
  queued_->notify();
  return Work(message);
}

void LinkShaper::run_link() {
  for (;;) {
    Shaped* message;
    std::uint64_t seen;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      message = first_;
      seen = queued_->count();
    }
    if (!message) {
      queued_->wait(seen + 1, forever);
      continue;
    }
    try {
      if (!broken_) pause_until(message->leaves_at);
    } catch (const Failure&) {
      broken_ = true;  // whoever waits for the messages hears of it at once
    }
    release_first(*message);
  }
}

void LinkShaper::release_first(Shaped& message) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    first_ = message.next;
    if (!first_) last_ = nullptr;
    ++departed_;
    if (message.abandoned)
      give_back(message);
    else
      message.marker =
          inner_.send(message.to, marker_channel(message.channel), message.label, std::span(&message.marker_byte, 1));
  }
  left_->notify();
}

// ---- in

Work LinkShaper::receive(Rank from, Channel channel, Label label, Work inner, std::size_t bytes) {
  const double now = inner_.now();
  const std::lock_guard lock(mutex_);
  Shaped& message = take();
  message.marker = inner_.receive(from, marker_channel(channel), label, std::span(&message.marker_byte, 1));
  message.sends = false;
  message.inner = std::move(inner);
  message.size = bytes;
  message.not_before = now;
  return Work(&message);
}

void LinkShaper::arrive(Shaped& message, double at) {
  const std::lock_guard lock(mutex_);
  message.arrived = true;
  message.comes_at = in_free_ = std::max(in_free_ + seconds_for(message.size), at);
}

// ---- both

bool LinkShaper::wait(Shaped& message, double deadline) {
  if (message.sends)
    return left_->wait(message.ticket + 1, deadline) && message.marker.wait(deadline) && message.inner.wait(deadline);
  if (!message.arrived) {
    // If it has come while nobody waited, the wire may have been busy with it since.
    const bool was_there = message.marker.finished();
    const bool came = wait_for_marker(message, deadline);
    const double now = inner_.now();
    if (!came) {
      message.not_before = now;
      return false;
    }
    arrive(message, was_there ? message.not_before : now);
  }
  if (!message.inner.wait(deadline)) return false;
  pause_until(std::min(message.comes_at, deadline));
  return message.comes_at <= deadline;
}

bool LinkShaper::wait_for_marker(Shaped& message, double deadline) {
  try {
    return message.marker.wait(deadline);
  } catch (const Mismatch&) {
    message.inner.wait(deadline);  // throws the same about the message itself
    throw;
  }
}

bool LinkShaper::finished(Shaped& message) {
  if (message.sends) return left_->count() > message.ticket && message.marker.finished() && message.inner.finished();
  if (!message.arrived) {
    const bool there = message.marker.finished();
    const double now = inner_.now();
    if (!there) {
      message.not_before = now;
      return false;
    }
    arrive(message, message.not_before);
  }
  return message.inner.finished() && message.comes_at <= inner_.now();
}

void LinkShaper::release(Shaped& message) {
  Work inner, marker;  // are let go without the lock
  const std::lock_guard lock(mutex_);
  std::swap(inner, message.inner);
  if (message.sends && message.ticket >= departed_) {
    message.abandoned = true;
    return;
  }
  std::swap(marker, message.marker);
  give_back(message);
}

// Waits for a message from nobody: so the messages of this rank move on meanwhile, and a broken world is noticed.
void LinkShaper::pause_until(double time) {
  double now = inner_.now();
  if (now >= time) return;
  Work silence;
  {
    const std::lock_guard lock(mutex_);
    if (!silences_.empty()) {
      silence = std::move(silences_.back());
      silences_.pop_back();
    }
  }
  if (silence.done()) silence = inner_.receive(inner_.rank(), silent_channel, {}, std::span(&nothing_, 1));
  while (now < time) {
    silence.wait(std::min(time, now + slice));
    now = inner_.now();
    const std::lock_guard lock(mutex_);
    if (stopping_) break;
  }
  const std::lock_guard lock(mutex_);
  silences_.push_back(std::move(silence));
}

}  // namespace echelon
