#include "world/transport/mpi/transport.h"

#include <algorithm>
#include <cstring>

#include "world/os/tasks.h"
#include "world/transport/memory/wake_up.h"
#include "world/transport/mpi/library.h"

namespace echelon::mpi {

namespace {

constexpr int header_tag = 1, first_data_tag = 2;
constexpr std::uint32_t data_tags = 1 << 20;               // far more than are ever under way at once
constexpr std::size_t piece_bytes = std::size_t{1} << 30;  // MPI counts with an int
constexpr double nap_seconds = 50e-6;

}  // namespace

bool MpiOperation::wait(double deadline) {
  const bool in_time = transport->wait_for(deadline, [this] {
    const std::lock_guard lock(transport->mutex_);
    if (!done && transport->failure_.known()) transport->failure_.throw_peer_lost(to_string(label));
    // What it sent before its end may still be on its way; and this rank itself has not ended while it waits.
    if (!done && !sends && requests.empty() && peer != transport->api_.rank &&
        transport->ended_[static_cast<std::size_t>(peer)])
      ended = true;
    return done || ended;
  });
  if (!in_time) return false;
  if (mismatched) throw Mismatch(problem);
  if (!done) throw PeerLost(peer, "its program has ended", to_string(label));
  return true;
}

bool MpiOperation::finished() {
  const std::lock_guard lock(transport->mutex_);
  return done;
}

void MpiOperation::release() {
  const std::lock_guard lock(transport->mutex_);
  if (done && requests.empty()) return transport->give_back(*this);
  // Nobody waits any more and the memory may go away; MPI cannot be told, so the job is over if it still uses it.
  if (!requests.empty()) {
    for (auto& request : requests) transport->api_.cancel(&request);
    requests.clear();
    std::erase(transport->active_, this);
    return;  // never used again
  }
  auto& posted = transport->channel_state(peer, channel).posted;
  std::erase(posted, this);
  transport->give_back(*this);
}

MpiTransport::MpiTransport(EchelonMpiApi& api, FirstFailure& failure, Clock& clock, std::function<void()> idle)
    : api_(api),
      failure_(failure),
      clock_(clock),
      idle_(std::move(idle)),
      ended_(static_cast<std::size_t>(api.size)),
      heard_(frame_header_bytes + inline_bytes) {
  ended_[static_cast<std::size_t>(api.rank)] = 1;
  listen();
}

MpiTransport::~MpiTransport() { api_.cancel(&listening_); }

void MpiTransport::listen() {
  check(api_, api_.receive(heard_.data(), static_cast<int>(heard_.size()), -1, header_tag, &listening_), "receiving");
}

MpiOperation& MpiTransport::take() {
  if (free_.empty()) {
    free_.push_back(&all_.emplace_back());
    free_.back()->transport = this;
    free_.reserve(all_.size());
  }
  MpiOperation& l = *free_.back();
  free_.pop_back();
  l.done = l.mismatched = l.ended = l.dropped = false;
  return l;
}

void MpiTransport::give_back(MpiOperation& operation) { free_.push_back(&operation); }

void MpiTransport::begin_send(MpiOperation& l, const FrameHeader& header, std::span<const std::byte> payload) {
  const auto bytes = encode_header(header);
  l.buffer.assign(bytes.begin(), bytes.end());
  l.buffer.insert(l.buffer.end(), payload.begin(), payload.end());
  l.requests.resize(1);
  check(api_, api_.send(l.buffer.data(), static_cast<int>(l.buffer.size()), l.peer, header_tag, &l.requests[0]),
        "sending");
  active_.push_back(&l);
}

Work MpiTransport::send(Rank to, Channel channel, const Label& label, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  MpiOperation& l = take();
  l.sends = true;
  l.peer = to;
  l.channel = channel;
  l.label = label;
  l.bytes = bytes.size();
  FrameHeader h;
  h.from = static_cast<std::uint32_t>(api_.rank);
  h.to = static_cast<std::uint32_t>(to);
  h.channel = channel;
  h.label = label;
  h.message_bytes = bytes.size();
  if (bytes.size() <= inline_bytes) {
    seal(h, bytes);
    l.dropped = true;  // copied: the program need not wait for it
    begin_send(l, h, bytes);
    return Work();
  }
  h.sequence = first_data_tag + next_tag_++ % data_tags;
  seal(h, {});
  begin_send(l, h, {});
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const auto piece = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
    check(api_,
          api_.send(piece.data(), static_cast<int>(piece.size()), to, static_cast<int>(h.sequence),
                    &l.requests.emplace_back()),
          "sending");
  }
  return Work(&l);
}

void MpiTransport::say(FrameKind kind, Rank to, std::string_view text, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  MpiOperation& l = take();
  l.sends = true;
  l.peer = to;
  l.dropped = true;
  const auto payload = std::as_bytes(std::span(text.substr(0, inline_bytes)));
  FrameHeader h;
  h.kind = kind;
  h.from = static_cast<std::uint32_t>(api_.rank);
  h.to = static_cast<std::uint32_t>(to);
  h.sequence = sequence;
  seal(h, payload);
  begin_send(l, h, payload);
}

Work MpiTransport::receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes,
                           Sink sink) {
  const std::lock_guard lock(mutex_);
  MpiOperation& l = take();
  l.sends = false;
  l.peer = from;
  l.channel = channel;
  l.label = label;
  l.bytes = bytes;
  l.into = into;
  l.sink = sink;
  ChannelState& waiting = channel_state(from, channel);
  if (waiting.early.empty()) {
    waiting.posted.push_back(&l);
  } else {
    const Early early = std::move(waiting.early.front());
    waiting.early.pop_front();
    match(l, early.header, early.payload);
  }
  return Work(&l);
}

void MpiTransport::match(MpiOperation& l, const FrameHeader& h, std::span<const std::byte> payload) {
  if (h.label != l.label || h.message_bytes != l.bytes) {
    l.problem = fmt::format("rank {} sent {}, {} bytes; rank {} expected {}, {} bytes (channel {})", l.peer,
                            to_string(h.label), h.message_bytes, api_.rank, to_string(l.label), l.bytes, l.channel);
    l.mismatched = l.done = true;
    return;
  }
  if (l.bytes <= inline_bytes) {
    if (l.sink.take)
      l.sink.take(l.sink.self, 0, payload);
    else
      std::copy(payload.begin(), payload.end(), l.into);
    l.done = true;
    return;
  }
  if (l.sink.take) l.buffer.resize(l.bytes);
  std::byte* const into = l.sink.take ? l.buffer.data() : l.into;
  for (std::size_t at = 0; at < l.bytes; at += piece_bytes) {
    check(api_,
          api_.receive(into + at, static_cast<int>(std::min(piece_bytes, l.bytes - at)), l.peer,
                       static_cast<int>(h.sequence), &l.requests.emplace_back()),
          "receiving");
  }
  active_.push_back(&l);
}

void MpiTransport::handle(Rank from, std::span<const std::byte> message) {
  const FrameHeader h = decode_header(message);
  const auto payload = message.subspan(frame_header_bytes);
  check_payload(h, payload);
  const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  switch (h.kind) {
    case FrameKind::data: {
      ChannelState& l = channel_state(from, h.channel);
      if (l.posted.empty()) {
        l.early.push_back({h, {payload.begin(), payload.end()}});
      } else {
        MpiOperation& operation = *l.posted.front();
        l.posted.pop_front();
        match(operation, h, payload);
      }
      break;
    }
    case FrameKind::bye: ended_[static_cast<std::size_t>(from)] = 1; break;
    case FrameKind::abort:
      ended_[static_cast<std::size_t>(from)] = 1;
      failure_.set(from, text);
      break;
    case FrameKind::lost:  // it ends because it heard of another's failure
      ended_[static_cast<std::size_t>(from)] = 1;
      failure_.set(static_cast<int>(h.sequence), text);
      break;
    default: fail("rank {} sent a frame of a kind that has no business here", from);
  }
}

bool MpiTransport::advance(MpiOperation& l) {
  while (!l.requests.empty()) {
    int done = 0, from = 0, count = 0;
    check(api_, api_.test(&l.requests.back(), &done, &from, &count), "a message");
    if (!done) return false;
    l.requests.pop_back();
  }
  return true;
}

void MpiTransport::progress_locked() {
  for (;;) {
    int done = 0, from = 0, count = 0;
    check(api_, api_.test(&listening_, &done, &from, &count), "receiving");
    if (!done) break;
    handle(from, std::span<const std::byte>(heard_).first(static_cast<std::size_t>(count)));
    listen();
  }
  for (std::size_t i = 0; i < active_.size();) {
    MpiOperation& l = *active_[i];
    if (!advance(l)) {
      ++i;
      continue;
    }
    active_[i] = active_.back();
    active_.pop_back();
    if (!l.sends && l.sink.take) l.sink.take(l.sink.self, 0, l.buffer);
    l.done = true;
    if (l.dropped) give_back(l);
  }
}

void MpiTransport::progress() {
  const std::lock_guard lock(mutex_);
  progress_locked();
}

bool MpiTransport::wait_for(double deadline, const std::function<bool()>& condition) {
  const SpinPolicy spin_policy = spin_policy_for(api_.size);
  SpinWait timeout(spin_policy, deadline);
  for (;;) {
    progress();
    idle_();
    if (condition()) return true;
    switch (timeout.pause()) {
      case SpinWait::Advice::look_again: break;
      case SpinWait::Advice::too_late: return false;
      case SpinWait::Advice::sleep: sleep_really(std::min(nap_seconds, timeout.seconds_to_sleep()));
    }
  }
}

bool MpiTransport::all_have_ended() {
  const std::lock_guard lock(mutex_);
  return std::all_of(ended_.begin(), ended_.end(), [](char e) { return e != 0; });
}

bool MpiTransport::nothing_left() {
  const std::lock_guard lock(mutex_);
  return std::none_of(active_.begin(), active_.end(), [](const MpiOperation* l) { return l->sends; });
}

}  // namespace echelon::mpi
