#pragma once
// Exchange beside computation, for gradients that go to servers. A key is pushed as soon as its gradient is complete,
// while backward still runs (wait-free backward, Poseidon). With order `priority` or `enforced` the worker also goes on
// when everything is pushed, and waits for a key's answer only when the next forward pass reads its parameters (P3,
// TicTac).
//
// Answers are taken only after backward, because backward still reads the weights which they replace. Pusher and inbox
// belong to the pipeline's task from `begin` until `end` returns or, where answers are deferred, until all of the
// step's answers have come (`finish`).
//
// The worker's thread calls it; `wait_for` is asked by all cores. What goes wrong in the task is thrown by `end` and
// `finish`.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "parallel/server/inbox.h"
#include "parallel/server/pusher.h"
#include "parallel/step/bucket_pipeline.h"

namespace echelon::exchanges {

class ServerOverlap {
 public:
  // Collective. Everything outlives it.
  ServerOverlap(const ExchangeParts& parts, const ServerMap& map, Pusher& pusher, WorkerInbox& inbox);
  ~ServerOverlap();

  bool defers() const { return defers_; }  // answers are waited for when forward needs them
  void begin(const StepInfo& info, bool asks);
  // Backward is over. Returns when the gradient is free again; unless answers are deferred, when they are there.
  void end();
  void finish() { pipeline_.finish(); }             // until the last step's answers are there
  void answered(std::uint32_t key);                 // the inbox has applied an answer
  double& waited() { return waited_; }              // seconds, by the worker
  double& out_of_order() { return out_of_order_; }  // answers after one from the same server that is read later

 private:
  struct Step {
    StepInfo info;
    bool asks = false;
  };
  void assign_keys(const std::vector<Bucket>& buckets);
  void defer_answers();
  void wait_for(Range range);
  void push(std::uint64_t step, const std::vector<std::uint32_t>& keys);
  void conclude(std::uint64_t step);
  template <typename F>
  void or_release(const F& f);
  void release_waiting();

  const ExchangeParts& parts_;
  const ServerMap& map_;
  Pusher& pusher_;
  WorkerInbox& inbox_;
  bool defers_;
  std::vector<std::vector<std::uint32_t>> keys_;  // by bucket: complete with it
  std::vector<std::uint32_t> rest_;               // keys of which backward says nothing
  std::unique_ptr<Event> pushed_;                 // counts steps: all keys, so that the gradient may be written
  std::vector<std::size_t> reading_;              // by key: its place in the order in which forward reads them, from 1
  std::vector<std::unique_ptr<Event>> arrived_;   // by key: counts steps: the answer is there
  std::vector<std::size_t> furthest_;  // by server: the last place in that order of the step's answers so far
  std::array<Step, 2> steps_;          // the present one and the one before it
  std::atomic<bool> failed_ = false;
  double waited_ = 0, out_of_order_ = 0;
  BucketPipeline pipeline_;  // last: it has a task
};

}  // namespace echelon::exchanges
