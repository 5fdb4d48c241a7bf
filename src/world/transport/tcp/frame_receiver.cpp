#include "world/transport/tcp/frame_receiver.h"

#include <algorithm>
#include <cstring>

namespace echelon::tcp {

namespace {

constexpr std::size_t early_bytes = std::size_t{64} << 10;
constexpr std::size_t longest_note = 4096;

[[noreturn]] void refuse(const std::string& text) { throw BadFrame(FrameFault::length, text); }

}  // namespace

FrameReceiver::FrameReceiver(int from, int to, std::uint32_t epoch, FrameSender& sender, Hear hear)
    : from_(static_cast<std::uint32_t>(from)),
      to_(static_cast<std::uint32_t>(to)),
      epoch_(epoch),
      sender_(sender),
      hear_(std::move(hear)),
      early_(early_bytes),
      bounce_(piece_bytes) {
  limits_.payload_bytes = piece_bytes;
}

FrameReceiver::ChannelState& FrameReceiver::channel_state(Channel channel) {
  if (const auto it = channels_.find(channel); it != channels_.end()) return *it->second;
  if (channels_.size() >= most_channels) refuse("a channel too many");
  auto& channel_state = channels_[channel] = std::make_unique<ChannelState>();
  channel_state->waiting.reserve(16);
  return *channel_state;
}

std::vector<std::byte> FrameReceiver::buffer(std::size_t bytes) {
  std::vector<std::byte> b;
  if (!spare_.empty()) {
    b = std::move(spare_.back());
    spare_.pop_back();
  }
  b.resize(bytes);
  return b;
}

bool FrameReceiver::fits(Transfer& t, const Label& label, std::uint64_t bytes) {
  if (t.label == label && t.bytes == bytes) return true;
  t.problem = fmt::format("rank {} sent {} where rank {} expected {}", from_, describe(label, bytes), to_,
                          describe(t.label, t.bytes));
  t.finish(Transfer::mismatched);
  return false;
}

void FrameReceiver::deliver(Transfer& t, const Label& label, std::span<const std::byte> bytes) {
  if (!fits(t, label, bytes.size())) return;
  if (t.sink.take)
    t.sink.take(t.sink.self, 0, bytes);
  else
    std::copy(bytes.begin(), bytes.end(), t.into);
  t.finish(Transfer::done);
}

// Who waits for that message, if he still does.
Transfer* FrameReceiver::asked_for(ChannelState& l, std::uint64_t number) {
  Transfer* const t = l.queue.front();
  return t && t->number == number ? t : nullptr;
}

// A short message has left our hands: from time to time the sender must know.
void FrameReceiver::take(Channel channel, ChannelState& l, std::uint64_t bytes) {
  if (bytes > eager_bytes) return;
  l.taken += cost_of(bytes);
  if (l.taken - l.told < window_bytes / 4) return;
  l.told = l.taken;
  sender_.acknowledge(channel, l.taken);
}

void FrameReceiver::post(Transfer& t) {
  ChannelState& l = channel_state(t.channel);
  t.number = l.posted++;
  if (!l.waiting.empty()) {
    Waiting message = std::move(l.waiting[l.first_waiting++]);
    if (l.first_waiting == l.waiting.size()) {
      l.waiting.clear();
      l.first_waiting = 0;
    }
    l.waiting_cost -= cost_of(message.bytes.size());
    take(t.channel, l, message.bytes.size());
    deliver(t, message.label, message.bytes);
    spare_.push_back(std::move(message.bytes));
    return;
  }
  if (l.announced && l.announced->sequence == t.number) {
    const FrameHeader announced = *l.announced;
    l.announced.reset();
    if (!fits(t, announced.label, announced.message_bytes)) return;
  }
  l.queue.push(t);
  if (t.bytes > eager_bytes) sender_.ready(t.channel, t.number);
}

void FrameReceiver::abandon(Transfer& t) {
  ChannelState& l = channel_state(t.channel);
  if (l.receiving == &t) {
    l.receiving = nullptr;
    l.discarding = true;
    if (in_payload_ && channel_state_ == &l) {  // in the middle of a frame: the rest is read and thrown away
      target_ = bounce_.data();
      checked_ = false;
    }
    l.queue.remove(t);
    return;
  }
  l.queue.remove(t);  // its message will find nobody and be thrown away
}

void FrameReceiver::fail_all(Transfer::State state) {
  for (auto& [channel, l] : channels_) {
    if (l->receiving) {
      Transfer& t = *l->receiving;
      abandon(t);
      t.finish(state);
    }
    while (!l->queue.empty()) l->queue.pop().finish(state);
  }
}

std::size_t FrameReceiver::room(std::span<iovec, 2> pieces) {
  const std::size_t left = in_payload_ ? header_.payload_bytes - have_ : 0;
  if (early_at_ == early_end_) early_at_ = early_end_ = 0;
  if (early_at_ > 0 && early_.size() - early_end_ < frame_header_bytes) {
    std::memmove(early_.data(), early_.data() + early_at_, early_end_ - early_at_);
    early_end_ -= std::exchange(early_at_, 0);
  }
  std::size_t early_room = early_.size() - early_end_;
  // In the middle of a long message the next frame's payload should not come into `early_`: only its header.
  if (left > early_bytes / 4) early_room = std::min(early_room, frame_header_bytes);
  std::size_t n = 0;
  if (left > 0) pieces[n++] = {target_ + have_, left};
  if (early_room > 0) pieces[n++] = {early_.data() + early_end_, early_room};
  return n;
}

void FrameReceiver::advance(std::size_t bytes) {
  if (in_payload_) {
    const std::size_t direct = std::min<std::size_t>(bytes, header_.payload_bytes - have_);
    have_ += direct;
    bytes -= direct;
  }
  early_end_ += bytes;
  parse();
}

void FrameReceiver::parse() {
  for (;;) {
    if (in_payload_) {
      const std::size_t n = std::min<std::size_t>(early_end_ - early_at_, header_.payload_bytes - have_);
      if (n > 0) std::memcpy(target_ + have_, early_.data() + early_at_, n);
      early_at_ += n;
      have_ += n;
      if (have_ < header_.payload_bytes) return;
      in_payload_ = false;
      finish_frame();
    }
    if (early_end_ - early_at_ < frame_header_bytes) return;
    const auto bytes = std::span<const std::byte>(early_).subspan(early_at_, frame_header_bytes);
    early_at_ += frame_header_bytes;
    begin(decode_header(bytes, limits_));
  }
}

void FrameReceiver::begin(const FrameHeader& header) {
  header_ = header;
  if (header.from != from_ || header.to != to_ || header.epoch != epoch_) {
    refuse(fmt::format("a frame from rank {} to rank {} of epoch {} on a connection from rank {} to rank {} of {}",
                       header.from, header.to, header.epoch, from_, to_, epoch_));
  }
  in_payload_ = true;
  checked_ = true;
  have_ = 0;
  channel_state_ = nullptr;
  if (header.kind == FrameKind::data) return begin_data();
  if (header.payload_bytes > longest_note) refuse(fmt::format("a note of {} bytes", header.payload_bytes));
  target_ = bounce_.data();
}

void FrameReceiver::begin_data() {
  ChannelState& l = channel_state(header_.channel);
  channel_state_ = &l;
  if (header_.sequence != l.arrived || header_.offset != l.offset) {
    refuse(fmt::format("message {} from {} on where message {} from {} on was due", header_.sequence, header_.offset,
                       l.arrived, l.offset));
  }
  if (l.receiving && (l.receiving->bytes != header_.message_bytes || l.receiving->label != header_.label))
    refuse(fmt::format("a message of {} bytes that had begun with {}", header_.message_bytes, l.receiving->bytes));
  l.announced.reset();
  if (header_.offset == 0 && !l.receiving && header_.sequence < l.posted) {
    Transfer* const t = asked_for(l, header_.sequence);
    if (t && t->label == header_.label && t->bytes == header_.message_bytes) {
      l.receiving = t;
    } else {
      l.discarding = true;
      if (t) fits(l.queue.pop(), header_.label, header_.message_bytes);
    }
  }
  if (l.discarding) {
    target_ = bounce_.data();
  } else if (l.receiving) {
    target_ = l.receiving->sink.take ? bounce_.data() : l.receiving->into + header_.offset;
  } else {
    if (header_.message_bytes > eager_bytes || header_.payload_bytes != header_.message_bytes ||
        l.waiting_cost + cost_of(header_.message_bytes) > window_bytes) {
      refuse(fmt::format("{} bytes that nobody asked for", header_.message_bytes));
    }
    arriving_ = buffer(header_.payload_bytes);
    target_ = arriving_.data();
  }
}

void FrameReceiver::finish_frame() {
  const std::span<const std::byte> payload(target_, header_.payload_bytes);
  if (checked_) check_payload(header_, payload);
  switch (header_.kind) {
    case FrameKind::data: return finish_data();
    case FrameKind::control: return hear_control();
    case FrameKind::ack: return sender_.hear_acknowledge(header_.channel, header_.acknowledged);
    default: return hear_(header_, payload);
  }
}

void FrameReceiver::finish_data() {
  ChannelState& l = *channel_state_;
  Transfer* t = l.receiving;
  if (t && t->sink.take) t->sink.take(t->sink.self, header_.offset, {target_, header_.payload_bytes});
  l.offset += header_.payload_bytes;
  if (l.offset < header_.message_bytes) return;
  // The message is complete.
  ++l.arrived;
  l.offset = 0;
  l.receiving = nullptr;
  if (std::exchange(l.discarding, false)) return take(header_.channel, l, header_.message_bytes);
  if (t) {
    take(header_.channel, l, header_.message_bytes);
    l.queue.pop();
    return t->finish(Transfer::done);
  }
  if (header_.sequence >= l.posted) {
    l.waiting_cost += cost_of(arriving_.size());
    if (l.first_waiting > l.waiting.size() / 2 && l.waiting.size() == l.waiting.capacity()) {
      l.waiting.erase(l.waiting.begin(), l.waiting.begin() + static_cast<std::ptrdiff_t>(l.first_waiting));
      l.first_waiting = 0;
    }
    l.waiting.push_back({header_.label, std::move(arriving_)});
    return;
  }
  take(header_.channel, l, header_.message_bytes);
  if (asked_for(l, header_.sequence)) deliver(l.queue.pop(), header_.label, arriving_);  // asked for while it arrived
  spare_.push_back(std::move(arriving_));
}

void FrameReceiver::hear_control() {
  const auto what = header_.payload_bytes == 1 ? static_cast<Note>(bounce_[0]) : Note{};
  if (what == Note::ready) return sender_.hear_ready(header_.channel, header_.sequence);
  if (what != Note::announce) refuse("an unknown note");
  // A long message waits for its place. If one is there already, we have told; only look whether the two agree.
  ChannelState& l = channel_state(header_.channel);
  if (header_.sequence == l.posted) l.announced = header_;
  Transfer* const t = asked_for(l, header_.sequence);
  if (!t || (t->label == header_.label && t->bytes == header_.message_bytes)) return;
  fits(l.queue.pop(), header_.label, header_.message_bytes);
}

}  // namespace echelon::tcp
