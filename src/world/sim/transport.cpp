#include "world/sim/transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"

namespace echelon::sim {

namespace {

// Stands in the list of those to be woken, as long as it waits.
class Waiting {
 public:
  Waiting(std::vector<Strand*>& list, Strand* strand) : list_(list), strand_(strand) { list_.push_back(strand_); }
  ~Waiting() { std::erase(list_, strand_); }
  Waiting(const Waiting&) = delete;

 private:
  std::vector<Strand*>& list_;
  Strand* strand_;
};

}  // namespace

bool SimOperation::wait(double deadline) { return transport_->wait(*this, deadline); }
void SimOperation::release() { transport_->release(*this); }

std::string SimOperation::describe() const {
  return fmt::format("{} ({} bytes) {} rank {} on channel {}", to_string(label_), bytes_, sending_ ? "to" : "from",
                     peer_, channel_);
}

Transport::Transport(Scheduler& scheduler, Network& network, const SimOptions& options, int ranks, SimReport& report,
                     Ranks callbacks)
    : scheduler_(scheduler),
      network_(network),
      options_(options),
      report_(report),
      ranks_(std::move(callbacks)),
      framed_(options.faults.on_messages()),
      mailbox_(static_cast<std::size_t>(ranks)),
      lines_(static_cast<std::size_t>(ranks)) {}

Transport::~Transport() = default;

// ---- operations

SimOperation& Transport::start(int owner, int peer, Channel channel, const Label& label, std::size_t bytes) {
  ranks_.check_alive(owner);
  if (peer < 0 || peer >= static_cast<int>(mailbox_.size()))
    bad_input("{}: there is no rank {} among {}", to_string(label), peer, mailbox_.size());
  if (unused_.empty()) {
    operations_.emplace_back().transport_ = this;
    unused_.push_back(&operations_.back());
  }
  SimOperation& op = *unused_.back();
  unused_.pop_back();
  op.state_ = SimOperation::State::pending;
  op.taken_ = false;
  op.owner_ = owner;
  op.peer_ = peer;
  op.channel_ = channel;
  op.label_ = label;
  op.bytes_ = bytes;
  return op;
}

void Transport::finish(SimOperation& op) {
  if (op.state_ == SimOperation::State::pending) op.state_ = SimOperation::State::done;
  for (Strand* strand : op.waiting_) scheduler_.wake(*strand);
  if (SimCompletionQueue* const watcher = std::exchange(op.watcher_, nullptr)) watcher->happened(op.watched_as_);
}

bool Transport::alive(const Handle& handle) const {
  return handle.operation && handle.operation->generation_ == handle.generation;
}

void Transport::release(SimOperation& op) {
  ++op.generation_;
  op.into_ = {};
  op.for_sink_ = {};
  op.waiting_.clear();
  op.watcher_ = nullptr;
  unused_.push_back(&op);
}

bool Transport::wait(SimOperation& op, double deadline) {
  using State = SimOperation::State;
  const double begin = scheduler_.now();
  const Scheduler::Describe describe = [&op] { return op.describe(); };
  bool polled = false;
  while (op.state_ == State::pending) {
    ranks_.check_alive(op.owner_);
    ranks_.check_whole(op.owner_, describe);
    if (scheduler_.now() >= deadline && polled) break;
    // Who only asks whether it is done, again and again, must not stop the time: a question costs a microsecond.
    const double until = std::max(deadline, scheduler_.now() + 1e-6);
    polled = true;
    const Waiting waiting(op.waiting_, scheduler_.current());
    scheduler_.block(until, describe);
  }
  ranks_.check_alive(op.owner_);
  report_.ranks[static_cast<std::size_t>(op.owner_)].waiting_seconds += scheduler_.now() - begin;
  if (op.state_ == State::pending) return false;
  if (op.state_ == State::mismatch) throw Mismatch(op.mismatch_);
  if (!op.sending_ && op.sink_.take && !std::exchange(op.taken_, true)) op.sink_.take(op.sink_.self, 0, op.for_sink_);
  return true;
}

// ---- messages

Work Transport::send(int from, int to, Channel channel, const Label& label, std::span<const std::byte> bytes) {
  SimOperation& op = start(from, to, channel, label, bytes.size());
  op.sending_ = true;
  op.sink_ = {};
  auto& mine = report_.ranks[static_cast<std::size_t>(from)];
  ++mine.messages_sent;
  mine.bytes_sent += bytes.size();
  const bool eager = bytes.size() <= options_.eager_bytes;
  const Handle handle{&op, op.generation_};
  const Handle when_taken = eager ? Handle{} : handle;
  if (framed_ && from != to) {
    if (eager) finish(op);
    Line& l = line(from, to);
    l.senders.push_back(when_taken);
    l.link->send({channel, label, {bytes.begin(), bytes.end()}}, scheduler_.now());
    pump(from, to);
    return Work(&op);
  }
  auto message =
      std::make_shared<InFlight>(InFlight{from, to, channel, label, {bytes.begin(), bytes.end()}, when_taken});
  std::function<void()> left;
  if (eager)
    left = [this, handle] {
      if (alive(handle)) finish(*handle.operation);
    };
  network_.carry(from, to, bytes.size(), std::move(left), [this, message] { deliver(std::move(*message)); });
  return Work(&op);
}

Work Transport::receive(int at, int from, Channel channel, const Label& label, std::size_t bytes,
                        std::span<std::byte> into, Sink sink) {
  SimOperation& op = start(at, from, channel, label, bytes);
  op.sending_ = false;
  op.into_ = into;
  op.sink_ = sink;
  MatchQueue& box = match_queue(at, from, channel);
  if (box.arrived.empty()) {
    box.expected.push_back({&op, op.generation_});
  } else {
    InFlight message = std::move(box.arrived.front());
    box.arrived.pop_front();
    match(op, std::move(message));
  }
  return Work(&op);
}

Transport::MatchQueue& Transport::match_queue(int at, int from, Channel channel) {
  return mailbox_[static_cast<std::size_t>(at)][(static_cast<std::uint64_t>(from) << 32) | channel];
}

void Transport::deliver(InFlight message) {
  if (ranks_.gone(message.to)) return;
  scheduler_.mix((static_cast<std::uint64_t>(message.from) << 32) | static_cast<std::uint64_t>(message.to));
  scheduler_.mix((static_cast<std::uint64_t>(crc32c(message.bytes)) << 32) | message.label.number);
  MatchQueue& box = match_queue(message.to, message.from, message.channel);
  while (!box.expected.empty()) {
    const Handle handle = box.expected.front();
    box.expected.pop_front();
    if (!alive(handle)) continue;  // its rank has lost interest
    match(*handle.operation, std::move(message));
    return;
  }
  box.arrived.push_back(std::move(message));
}

void Transport::match(SimOperation& op, InFlight message) {
  auto& mine = report_.ranks[static_cast<std::size_t>(op.owner_)];
  ++mine.messages_received;
  mine.bytes_received += message.bytes.size();
  if (message.label != op.label_ || message.bytes.size() != op.bytes_) {
    op.state_ = SimOperation::State::mismatch;
    op.mismatch_ =
        fmt::format("rank {} expected {} ({} bytes) from rank {} on channel {}, but rank {} sent {} ({} bytes)",
                    op.owner_, to_string(op.label_), op.bytes_, op.peer_, op.channel_, message.from,
                    to_string(message.label), message.bytes.size());
  } else if (op.sink_.take) {
    op.for_sink_ = std::move(message.bytes);
  } else if (!message.bytes.empty()) {
    std::memcpy(op.into_.data(), message.bytes.data(), message.bytes.size());
  }
  finish(op);
  if (alive(message.sender)) finish(*message.sender.operation);
}

}  // namespace echelon::sim
