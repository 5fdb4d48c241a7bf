#pragma once
// What a plan makes of a model before anything runs: which rank has which layers, how many bytes it will allocate, how
// much it computes and sends, and how its schedule goes. `echelon plan show` prints it. Nothing is allocated or run.

#include <cstddef>
#include <string>
#include <vector>

#include "models/model.h"
#include "parallel/planned/stage_plans.h"
#include "plan/layout.h"
#include "plan/replay.h"

namespace echelon {

// What a rank of a split model allocates, in bytes.
struct RankBytes {
  std::size_t parameters = 0;     // of its stages, or its ranges of them
  std::size_t contributions = 0;  // to their gradients, summed over micro-batches
  std::size_t state = 0;          // of the optimizer
  // Of the micro-batches that are alive at once, and what a pass needs besides: gathered parameters too.
  std::size_t activations = 0;
  std::size_t messages = 0;  // buffers of what is sent
  std::size_t model = 0;     // the whole model, for evaluations and checkpoints
  std::size_t disk = 0;      // in files: the optimizer's state, the whole model. Not counted below

  std::size_t all() const { return parameters + contributions + state + activations + messages + model; }
  friend bool operator==(const RankBytes&, const RankBytes&) = default;
};

struct StageView {
  int stage = 0, part = 0;
  std::vector<int> ranks;
  std::vector<std::string> layers;
  std::int64_t weights = 0;  // numbers
  double flops = 0;          // of one micro-batch, forward and backward
  double work = 0;           // the same with memory-bound operations in it: what stages are balanced by
  double sends = 0;          // bytes of one micro-batch
};

struct PlanView {
  std::vector<StageView> stages;
  std::vector<RankBytes> ranks;
  std::vector<double> sent;  // by rank: bytes of messages of stages and their parts that it sends in a step
  std::vector<StageMessage> messages;
  Replay schedule;  // of the first replica, in units of a forward pass of the slowest stage
};

// `samples`: of a micro-batch. `slots`: numbers of optimizer state for each weight.
PlanView view_plan(const models::Model& model, const PlanLayout& layout, std::int64_t samples, std::size_t slots);

}  // namespace echelon
