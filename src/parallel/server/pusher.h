#pragma once
// How a worker pushes: its contributions pass the stages (push_chain.h) and are posted to the servers of their keys.
// Used by the worker's thread, or by the task that exchanges messages for it.

#include <cstdint>

#include "parallel/server/push_chain.h"
#include "parallel/server/replication.h"

namespace echelon::exchanges {

class Pusher {
 public:
  Pusher(const PushParts& stages, ParameterCopy& copy, WorkerReplication& replication);

  void begin_step(const StepInfo& info) { chain_.begin_step(info); }
  // Everything that the stages let go in this step. `asks`: for answers about all keys.
  void push_step(const StepInfo& info, bool asks);
  // The same with a cache: an answer about every key that it lets go, and no other. Good until the next call.
  const std::vector<std::uint32_t>& push_cached(const StepInfo& info);
  // One key, as soon as its gradient is complete; after the last one of a step, `end_step`.
  void push_key(std::uint32_t key, const StepInfo& info, bool asks);
  // Asks for the keys of which this worker's copy has not seen so many steps of everybody.
  void ask_for_old(std::int64_t steps, std::int64_t clock);
  void end_step() { copy_.count_push(); }
  void push_left_over(const StepInfo& info);  // at the end of a round of steps

  std::vector<StateSpan> state() { return chain_.state(); }

 private:
  MessageHeader header_of(const Push& push, bool asks) const;
  void post(MessageHeader head, std::span<const std::byte> bytes);

  const ExchangeParts& parts_;
  std::vector<Key> keys_;
  ParameterCopy& copy_;
  WorkerReplication& replication_;
  bool in_rounds_, gradients_;
  bool own_pace_;  // some keys' pushes are of several steps, so the copy is not like any version
  PushChain chain_;
  std::vector<char> pushed_;  // by key, in this step
};

}  // namespace echelon::exchanges
