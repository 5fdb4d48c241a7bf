#include "parallel/server/server_process.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "parallel/server/shard.h"

namespace echelon::exchanges {

struct ServerProcess::Frame {
  enum What : std::int32_t { message, latecomer, state };
  What what = message;
  std::int32_t position = 0;  // of the server
  Rank rank = 0;              // that a message comes from, or goes to; the latecomer
  MessageHeader head = {};
  std::uint64_t bytes = 0;  // that follow
  std::span<std::byte> as_bytes() { return std::as_writable_bytes(std::span(this, 1)); }
};

std::unique_ptr<ServerProcess> ServerProcess::make(ExchangeParts& parts) {
  const std::string& world = parts.world->place().world;
  if (world != "processes" && world != "tcp") return nullptr;
  return std::make_unique<ServerProcess>(parts);
}

ServerProcess::ServerProcess(ExchangeParts& parts) : parts_(parts), changed_(parts.world->make_event()) {}

void ServerProcess::close() {
  set(State::closing);
  if (process_) process_->stream().shut();
  reader_.reset();
  process_.reset();
}

void ServerProcess::add(ServerShard* shard) { shards_.push_back(shard); }

void ServerProcess::set(State state) {
  mutex_.take([&] { state_ = state; });
  changed_->notify();
}

void ServerProcess::begin_round() {
  if (state_ == State::lost) return;
  if (std::ranges::all_of(shards_, [](const ServerShard* s) { return !s || s->is_lost(); })) return set(State::lost);
  has_state_ = false;
  process_ = std::make_unique<HelperProcess>("echelon-server", [this](ByteStream& stream) { serve(stream); });
  reader_ = parts_.world->spawn("server process", [this] {
    try {
      read_frames();
    } catch (const std::exception& failure) {
      parts_.world->abort(failure.what(), echelon::kind_of(failure));
    }
  });
  set(State::runs);
}

void ServerProcess::end_round() {
  mutex_.take([&] {
    Frame ask{.what = Frame::state};
    if (state_ == State::runs) process_->stream().write(ask.as_bytes());
  });
  if (!reader_) return;
  reader_->join();
  reader_.reset();
  if (has_state_) set(State::between_rounds);
  process_.reset();
}

bool ServerProcess::pass_on(int position, const Message& message) {
  for (;;) {
    State now = State::closing;
    std::uint64_t seen = 0;
    mutex_.take([&] {
      now = state_, seen = changed_->count();
      if (now != State::runs) return;
      Frame frame{.position = position, .rank = message.from, .head = message.head, .bytes = message.payload().size()};
      if (process_->stream().write(frame.as_bytes())) process_->stream().write(message.payload());  // or it is lost
    });
    if (now != State::between_rounds) return now != State::lost;
    changed_->wait(seen + 1, std::numeric_limits<double>::infinity());
  }
}

// In the process: until the state is asked for, or nobody is left to ask.
void ServerProcess::serve(ByteStream& stream) {
  Mailbox outbox(*parts_.world, std::numeric_limits<std::size_t>::max(),
                 [&](Rank to, const MessageHeader& head, std::span<const std::byte> payload) {
                   Frame frame{.rank = to, .head = head, .bytes = payload.size()};
                   if (stream.write(frame.as_bytes())) stream.write(payload);
                 });
  parts_.mailbox = &outbox;
  for (ServerShard* shard : shards_)
    if (shard) shard->die_by(kill_this_process);
  std::vector<std::byte> payload;
  Message message;
  for (Frame frame; stream.read(frame.as_bytes());) {
    if (frame.what == Frame::state) {
      stream.write(frame.as_bytes());
      for (ServerShard* shard : shards_)
        if (shard)
          for (const StateSpan& state : shard->state()) stream.write(state.bytes);
      return;
    }
    payload.resize(frame.bytes);
    if (!stream.read(payload)) return;
    outbox.deliver(frame.rank, frame.head, payload);
    ServerShard& shard = *shards_[static_cast<std::size_t>(frame.position)];
    const Rank before = shard.latecomer();
    outbox.try_take(frame.head.tag, message);
    shard.take(message);
    Frame late{.what = Frame::latecomer, .position = frame.position, .rank = shard.latecomer()};
    if (late.rank != before) stream.write(late.as_bytes());
  }
}

void ServerProcess::read_frames() {
  ByteStream& stream = process_->stream();
  std::vector<std::byte> payload;
  for (Frame frame; stream.read(frame.as_bytes());) {
    if (frame.what == Frame::state) {
      if (!read_state()) break;
      has_state_ = true;
      return;
    }
    if (frame.what == Frame::latecomer) {
      shards_[static_cast<std::size_t>(frame.position)]->learn_of_latecomer(frame.rank);
      continue;
    }
    payload.resize(frame.bytes);
    if (!stream.read(payload)) break;
    parts_.mailbox->post(frame.rank, frame.head, std::span<const std::byte>(payload));
  }
  bool closing = false;
  mutex_.take([&] { closing = state_ == State::closing; });
  if (!closing) lose_servers();
}

bool ServerProcess::read_state() {
  for (ServerShard* shard : shards_)
    if (shard)
      for (const StateSpan& state : shard->state())
        if (!process_->stream().read(state.bytes)) return false;
  return true;
}

void ServerProcess::lose_servers() {
  parts_.team->say(fmt::format("the server process of rank {} (process {}) {}: the replicas of its servers take over",
                               parts_.rank(), process_->process(), process_->end()));
  for (ServerShard* shard : shards_)
    if (shard && !shard->is_lost()) shard->lose_state();
  set(State::lost);
}

}  // namespace echelon::exchanges
