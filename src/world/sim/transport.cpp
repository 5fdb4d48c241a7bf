#include "world/sim/transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"

namespace echelon::sim {

namespace {

// A strand is in the list of those to be woken as long as this lives.
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
      connections_(scheduler, network, options, ranks, report,
                   {.deliver = [this](SimMessage message) { deliver(std::move(message)); },
                    .crashed = ranks_.crashed,
                    .lost = ranks_.lost}),
      queues_(static_cast<std::size_t>(ranks)) {}

// ---- operations

SimOperation& Transport::start(int owner, int peer, Channel channel, const Label& label, std::size_t bytes) {
  ranks_.check_alive(owner);
  if (peer < 0 || peer >= static_cast<int>(queues_.size()))
    bad_input("{}: there is no rank {} among {}", to_string(label), peer, queues_.size());
  SimOperation& op = operations_.take();
  op.transport_ = this;
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

bool Transport::alive(const OperationHandle& handle) {
  return handle.operation && handle.operation->generation_ == handle.generation;
}

void Transport::release(SimOperation& op) {
  if (!op.sending_ && op.state_ == SimOperation::State::pending)
    queue_of(op.owner_, op.peer_, op.channel_).pending.remove(op);
  ++op.generation_;
  op.into_ = {};
  op.for_sink_ = {};
  op.waiting_.clear();
  op.watcher_ = nullptr;
  operations_.give_back(op);
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
    // A program that only asks whether it is done, again and again, must not stop the time: asking costs a microsecond.
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
  const OperationHandle handle{&op, op.generation_};
  SimMessage message{from, to, channel, label, {bytes.begin(), bytes.end()}, eager ? OperationHandle{} : handle};
  if (options_.faults.on_messages() && from != to) {
    if (eager) finish(op);
    connections_.send(std::move(message));
    return Work(&op);
  }
  std::function<void()> left;
  if (eager)
    left = [this, handle] {
      if (alive(handle)) finish(*handle.operation);
    };
  network_.carry(from, to, bytes.size(), std::move(left),
                 [this, shared = std::make_shared<SimMessage>(std::move(message))] { deliver(std::move(*shared)); });
  return Work(&op);
}

Work Transport::receive(int at, int from, Channel channel, const Label& label, std::size_t bytes,
                        std::span<std::byte> into, Sink sink) {
  SimOperation& op = start(at, from, channel, label, bytes);
  op.sending_ = false;
  op.into_ = into;
  op.sink_ = sink;
  if (auto* const message = channels_.receive(queue_of(at, from, channel), op)) {
    match(op, std::move(*message));
    channels_.done_with(*message);
  }
  return Work(&op);
}

Transport::Channels::Queue& Transport::queue_of(int at, int from, Channel channel) {
  return queues_[static_cast<std::size_t>(at)][(static_cast<std::uint64_t>(from) << 32) | channel];
}

void Transport::deliver(SimMessage message) {
  if (ranks_.crashed(message.to)) return;
  scheduler_.mix((static_cast<std::uint64_t>(message.from) << 32) | static_cast<std::uint64_t>(message.to));
  scheduler_.mix((static_cast<std::uint64_t>(crc32c(message.bytes)) << 32) | message.label.number);
  Channels::Queue& queue = queue_of(message.to, message.from, message.channel);
  if (SimOperation* const op = channels_.arrive(queue)) return match(*op, std::move(message));
  channels_.keep(queue) = std::move(message);
}

void Transport::match(SimOperation& op, SimMessage message) {
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
