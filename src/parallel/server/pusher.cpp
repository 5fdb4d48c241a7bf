#include "parallel/server/pusher.h"

#include <algorithm>
#include <bit>

namespace echelon::exchanges {

Pusher::Pusher(const PushParts& stages, ParameterCopy& copy, WorkerReplication& replication)
    : parts_(stages.parts),
      keys_(stages.keys.begin(), stages.keys.end()),
      copy_(copy),
      replication_(replication),
      in_rounds_(parts_.sync->traits().in_rounds),
      gradients_(parts_.rule->traits().quantity == RuleTraits::Quantity::gradient),
      own_pace_(parts_.order.by_magnitude || stages.settings.cache),
      chain_(stages),
      pushed_(keys_.size()) {}

void Pusher::push_step(const StepInfo& info, bool asks) {
  const std::vector<std::uint32_t>& keys = chain_.collect(info);
  std::ranges::fill(pushed_, 0);
  for (const std::uint32_t k : keys) push_key(k, info, asks), pushed_[k] = 1;
  if (!keys.empty()) end_step();
  if (!asks) return;
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (!pushed_[k]) post({.kind = await, .key = k, .clock = info.clock}, {});
}

const std::vector<std::uint32_t>& Pusher::push_cached(const StepInfo& info) {
  const std::vector<std::uint32_t>& keys = chain_.collect(info);
  for (const std::uint32_t k : keys) push_key(k, info, true);
  if (!keys.empty()) end_step();
  return keys;
}

void Pusher::ask_for_old(std::int64_t steps, std::int64_t clock) {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (copy_.seen(k) < steps) post({.kind = await, .key = k, .clock = clock - 1}, {});
}

void Pusher::push_left_over(const StepInfo& info) {
  const std::vector<std::uint32_t>& keys = chain_.left_over();
  for (const std::uint32_t k : keys) push_key(k, info, false);
  if (!keys.empty() && !own_pace_) end_step();
}

void Pusher::push_key(std::uint32_t key, const StepInfo& info, bool asks) {
  Push push{.key = key, .range = keys_[key].range, .info = info, .number = copy_.pushes()};
  if (in_rounds_)
    push.share = gradients_ ? info.share : 1, push.rate = info.lr;
  else
    push.rate = gradients_ ? info.lr * info.share : info.share;
  chain_.process(push);
  parts_.trainer->let_go(push.range);
  post(header_of(push, asks), push.bytes);
}

// messages.h says what the numbers mean.
MessageHeader Pusher::header_of(const Push& push, bool asks) const {
  MessageHeader head{.kind = asks ? MessageType::push_answer : MessageType::push, .key = push.key};
  if (in_rounds_) {
    head.clock = copy_.round(), head.number = push.share, head.second = std::bit_cast<std::uint64_t>(push.rate);
  } else {
    head.clock = push.info.clock, head.number = push.rate;
    const std::int64_t version = own_pace_ ? copy_.version(push.key) : copy_.version_with_own(push.key);
    head.second = static_cast<std::uint64_t>(version);
  }
  return head;
}

void Pusher::post(MessageHeader head, std::span<const std::byte> bytes) {
  replication_.posted(head, bytes);
  const Address to = replication_.push_to(head.key);
  head.tag = static_cast<std::uint16_t>(to.tag);
  parts_.mailbox->post(to.rank, head, bytes);
}

}  // namespace echelon::exchanges
