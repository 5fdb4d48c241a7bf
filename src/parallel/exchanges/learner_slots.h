#pragma once
// Where the learners of a worker compute side by side (learners.cpp): as many trainers as there are slots, each with a
// share of the worker's cores. A learner's state lies elsewhere and visits a slot for a step. One thread uses it.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "parallel/exchange.h"

namespace echelon::exchanges {

// What a learner takes along from step to step.
struct LearnerState {
  std::span<float> weights;
  std::span<std::byte> optimizer;

  void give_to(ReplicaTrainer& trainer) const;
  void take_from(ReplicaTrainer& trainer) const;
};

class LearnerSlots {
 public:
  LearnerSlots() = default;
  LearnerSlots(int count, int cores, const std::function<std::unique_ptr<ReplicaTrainer>(Cores&)>& make_trainer);

  int count() const { return static_cast<int>(slots_.size()); }
  // The learner that computes in that slot next, and on what (copied).
  void prepare(int slot, const StepInput& input, const LearnerState& learner);
  // The first `count` slots make a step, all at the same time. The sums of what they came to.
  StepResult run(int count, const ComputeHooks& hooks);

 private:
  struct Slot {
    std::unique_ptr<Cores> cores;
    std::unique_ptr<ReplicaTrainer> trainer;
    StepInfo info;
    data::Batch batch;
    LearnerState learner;
    StepResult result;
  };
  void make_step(Slot& slot, int first_core, const ComputeHooks& hooks);

  std::vector<Slot> slots_;
  std::unique_ptr<Cores> drivers_;  // a thread for each slot
};

}  // namespace echelon::exchanges
