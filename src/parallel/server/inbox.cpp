#include "parallel/server/inbox.h"

#include <algorithm>

#include "parallel/server/answers.h"

namespace echelon::exchanges {

WorkerInbox::WorkerInbox(const Parts& parts)
    : parts_(parts.parts),
      map_(parts.map),
      worker_(parts.worker),
      codecs_(parts.codecs),
      copy_(parts.copy),
      replication_(parts.replication),
      sync_(parts.parts.sync->traits()),
      wait_policy_(*parts.parts.team, *parts.parts.mailbox),
      due_(parts.map.keys.size()),
      flush_due_(parts.map.keys.size()),
      numbers_(codecs_.empty() ? 0 : largest_key(parts.map.keys) * sizeof(float)) {}

void WorkerInbox::expect_answers() {
  answers_due_ = static_cast<int>(due_.size());
  std::ranges::fill(due_, 1);
}

void WorkerInbox::expect_answers(std::span<const std::uint32_t> keys) {
  answers_due_ = static_cast<int>(keys.size());
  for (const std::uint32_t k : keys) due_[k] = 1;
}

void WorkerInbox::take_arrived() {
  Message message;
  while (parts_.mailbox->try_take(Exchange::worker_tag, message)) take(message);
}

void WorkerInbox::take_next() {
  Message message;
  const auto whom = [this] { return late_rank(); };
  if (warms_up_)
    wait_policy_.take_any_time(Exchange::worker_tag, message, "with the weights of the warm start", whom);
  else
    wait_policy_.take(Exchange::worker_tag, message, "with a server's answer", whom);
  take(message);
}

void WorkerInbox::take_answers() {
  while (answers_due_ > 0) take_next();
}

void WorkerInbox::wait_for_answers() {
  const double begin = parts_.world->now();
  take_answers();
  waited_ += parts_.world->now() - begin;
}

void WorkerInbox::wait_until_seen(std::int64_t steps) {
  const double begin = parts_.world->now();
  while (copy_.seen() < steps) take_next();
  waited_ += parts_.world->now() - begin;
}

void WorkerInbox::flush_servers() {
  for (std::uint32_t k = 0; k < map_.keys.size(); ++k) {
    if (k > 0 && map_.keys[k].server == map_.keys[k - 1].server) continue;
    const Address to = replication_.push_to(k);
    MessageHeader head{.kind = MessageType::flush, .tag = static_cast<std::uint16_t>(to.tag), .key = k};
    replication_.flushing(head);
    parts_.mailbox->post(to.rank, head);
    ++flushes_due_, flush_due_[k] = 1;
  }
  while (flushes_due_ > 0) take_next();
}

void WorkerInbox::flush(const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    parts_.mailbox->post(rank, {.kind = MessageType::flush, .tag = Exchange::server_tag, .key = 0});
    ++flushes_due_;
  }
  while (flushes_due_ > 0) take_next();
}

void WorkerInbox::wait_for_warm_start(std::int64_t updates) {
  for (std::uint32_t k = 0; k < map_.keys.size(); ++k)
    parts_.mailbox->post(map_.keys[k].server, {.kind = warm, .tag = Exchange::server_tag, .key = k, .clock = updates});
  warms_up_ = true;
  expect_answers();
  wait_for_answers();
  warms_up_ = false;
}

// The rank of a server that owes this worker something; if that is this rank, whom the server waits for.
Rank WorkerInbox::late_rank() const {
  std::size_t key = copy_.oldest_key();
  const auto first = [](const std::vector<char>& due) {
    return static_cast<std::size_t>(std::ranges::find(due, 1) - due.begin());
  };
  if (flushes_due_ > 0)
    key = first(flush_due_);
  else if (answers_due_ > 0)
    key = first(due_);
  return key < map_.keys.size() ? latecomer(static_cast<std::uint32_t>(key)) : -1;  // -1: in another site
}

void WorkerInbox::take(Message& message) {
  switch (message.head.kind) {
    case flushed: return take_flushed(message);
    case lost: return replication_.server_lost(message);
    case hand_in: hand_in_ = std::max(hand_in_, message.head.clock); return;
    case answer: return take_answer(message);
    default: fail_unknown_type(message, "a worker");
  }
}

void WorkerInbox::take_flushed(const Message& message) {
  const std::uint32_t k = message.head.key;
  if (k >= map_.keys.size()) fail("rank {} has flushed key {}, which does not exist", message.from, k);
  if (!replication_.is_new_flushed(message)) return;
  --flushes_due_, flush_due_[k] = 0;
}

void WorkerInbox::take_answer(Message& message) {
  const std::uint32_t k = message.head.key;
  if (k >= map_.keys.size()) fail("rank {} answered about key {}, which does not exist", message.from, k);
  if (!replication_.is_new_answer(message)) return;
  const Range range = map_.keys[k].range;
  if (!codecs_.empty() && encodes_answers(parts_, *codecs_[k])) {
    const std::span<float> values = numbers_.as<float>().first(range.count());
    codecs_[k]->decode(message.payload(), values);
    worker_.apply(range, values);
  } else {
    if (message.floats().size() != range.count())
      fail("rank {} answered with {} numbers about key {}, which has {}", message.from, message.floats().size(), k,
           range.count());
    worker_.apply(range, message.floats());
  }
  parts_.trainer->let_go(range);
  // What comes unasked may have left the server before this worker's last pushes came there.
  const auto own = sync_.sends_unasked ? static_cast<std::int64_t>(message.head.number) : copy_.pushes();
  copy_.read(k, static_cast<std::int64_t>(message.head.second), own);
  sync_.in_rounds ? copy_.reach_round(message.head.clock) : copy_.has_seen(k, message.head.clock);
  --answers_due_, due_[k] = 0;
  on_answer(k, message.head);
}

}  // namespace echelon::exchanges
