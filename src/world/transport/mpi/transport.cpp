#include "world/transport/mpi/transport.h"

#include <algorithm>
#include <cstring>

#include "world/os/tasks.h"
#include "world/os/wake_up.h"
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
    // The `bye` of a rank comes after all that it sent. (This rank has not ended: it waits.)
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
  if (done && requests.empty()) return transport->operations_.give_back(*this);
  // Nobody waits any more and the memory may go away; MPI cannot be told, so the job is over if it still uses it.
  if (!requests.empty()) {
    for (auto& request : requests) transport->api_.cancel(&request);
    requests.clear();
    std::erase(transport->active_, this);
    return;  // never used again
  }
  transport->queue_of(peer, channel).pending.remove(*this);
  transport->operations_.give_back(*this);
}

MpiTransport::MpiTransport(EchelonMpiApi& api, FirstFailure& failure, Clock& clock, std::function<void()> idle,
                           std::function<void(Rank, const RankStatus&)> status)
    : api_(api),
      failure_(failure),
      clock_(clock),
      idle_(std::move(idle)),
      status_(std::move(status)),
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
  MpiOperation& op = operations_.take();
  op.transport = this;
  op.done = op.mismatched = op.ended = op.dropped = false;
  return op;
}

void MpiTransport::begin_send(MpiOperation& op, const FrameHeader& header, std::span<const std::byte> payload) {
  const auto bytes = encode_header(header);
  op.buffer.assign(bytes.begin(), bytes.end());
  op.buffer.insert(op.buffer.end(), payload.begin(), payload.end());
  op.requests.resize(1);
  check(api_, api_.send(op.buffer.data(), static_cast<int>(op.buffer.size()), op.peer, header_tag, &op.requests[0]),
        "sending");
  active_.push_back(&op);
}

Work MpiTransport::send(Rank to, Channel channel, const Label& label, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  MpiOperation& op = take();
  op.sends = true;
  op.peer = to;
  op.channel = channel;
  op.label = label;
  op.bytes = bytes.size();
  FrameHeader h;
  h.from = static_cast<std::uint32_t>(api_.rank);
  h.to = static_cast<std::uint32_t>(to);
  h.channel = channel;
  h.label = label;
  h.message_bytes = bytes.size();
  if (bytes.size() <= inline_bytes) {
    seal(h, bytes);
    op.dropped = true;  // copied: the program need not wait for it
    begin_send(op, h, bytes);
    return Work();
  }
  h.sequence = first_data_tag + next_tag_++ % data_tags;
  seal(h, {});
  begin_send(op, h, {});
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const auto piece = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
    check(api_,
          api_.send(piece.data(), static_cast<int>(piece.size()), to, static_cast<int>(h.sequence),
                    &op.requests.emplace_back()),
          "sending");
  }
  return Work(&op);
}

void MpiTransport::say(FrameKind kind, Rank to, std::span<const std::byte> payload, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  MpiOperation& op = take();
  op.sends = true;
  op.peer = to;
  op.dropped = true;
  payload = payload.first(std::min(payload.size(), inline_bytes));
  FrameHeader h;
  h.kind = kind;
  h.from = static_cast<std::uint32_t>(api_.rank);
  h.to = static_cast<std::uint32_t>(to);
  h.sequence = sequence;
  seal(h, payload);
  begin_send(op, h, payload);
}

Work MpiTransport::receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes,
                           Sink sink) {
  const std::lock_guard lock(mutex_);
  MpiOperation& op = take();
  op.sends = false;
  op.peer = from;
  op.channel = channel;
  op.label = label;
  op.bytes = bytes;
  op.into = into;
  op.sink = sink;
  if (auto* const message = channels_.receive(queue_of(from, channel), op)) {
    match(op, message->header, message->payload);
    channels_.done_with(*message);
  }
  return Work(&op);
}

void MpiTransport::match(MpiOperation& op, const FrameHeader& h, std::span<const std::byte> payload) {
  if (h.label != op.label || h.message_bytes != op.bytes) {
    op.problem = fmt::format("rank {} sent {}, {} bytes; rank {} expected {}, {} bytes (channel {})", op.peer,
                             to_string(h.label), h.message_bytes, api_.rank, to_string(op.label), op.bytes, op.channel);
    op.mismatched = op.done = true;
    return;
  }
  if (op.bytes <= inline_bytes) {
    if (op.sink.take)
      op.sink.take(op.sink.self, 0, payload);
    else
      std::copy(payload.begin(), payload.end(), op.into);
    op.done = true;
    return;
  }
  if (op.sink.take) op.buffer.resize(op.bytes);
  std::byte* const into = op.sink.take ? op.buffer.data() : op.into;
  for (std::size_t at = 0; at < op.bytes; at += piece_bytes) {
    check(api_,
          api_.receive(into + at, static_cast<int>(std::min(piece_bytes, op.bytes - at)), op.peer,
                       static_cast<int>(h.sequence), &op.requests.emplace_back()),
          "receiving");
  }
  active_.push_back(&op);
}

void MpiTransport::handle(Rank from, std::span<const std::byte> message) {
  const FrameHeader h = decode_header(message);
  const auto payload = message.subspan(frame_header_bytes);
  check_payload(h, payload);
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  switch (h.kind) {
    case FrameKind::data: {
      Channels::Queue& queue = queue_of(from, h.channel);
      if (MpiOperation* const op = channels_.arrive(queue)) {
        match(*op, h, payload);
      } else {
        Arrival& arrival = channels_.keep(queue);
        arrival.header = h;
        arrival.payload.assign(payload.begin(), payload.end());
      }
      break;
    }
    case FrameKind::status: status_(from, decode_status(payload, api_.size)); break;
    case FrameKind::bye: ended_[static_cast<std::size_t>(from)] = 1; break;
    case FrameKind::abort:
      ended_[static_cast<std::size_t>(from)] = 1;
      failure_.set(from, text, lost_kind_of(h.sequence));
      break;
    case FrameKind::lost:  // it ends because it heard of another's failure
      ended_[static_cast<std::size_t>(from)] = 1;
      failure_.set(lost_rank_of(h.sequence), text, lost_kind_of(h.sequence));
      break;
    default: fail("rank {} sent a frame of kind {}, which no rank sends through MPI", from, static_cast<int>(h.kind));
  }
}

bool MpiTransport::advance(MpiOperation& op) {
  while (!op.requests.empty()) {
    int done = 0, from = 0, count = 0;
    check(api_, api_.test(&op.requests.back(), &done, &from, &count), "a message");
    if (!done) return false;
    op.requests.pop_back();
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
    MpiOperation& op = *active_[i];
    if (!advance(op)) {
      ++i;
      continue;
    }
    active_[i] = active_.back();
    active_.pop_back();
    if (!op.sends && op.sink.take) op.sink.take(op.sink.self, 0, op.buffer);
    op.done = true;
    if (op.dropped) operations_.give_back(op);
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
  return std::none_of(active_.begin(), active_.end(), [](const MpiOperation* op) { return op->sends; });
}

}  // namespace echelon::mpi
