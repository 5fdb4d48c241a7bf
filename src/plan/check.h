#pragma once
// The proof that a pipeline's lists can be run, before the first step: every task is there exactly once and in an order
// that makes sense, nobody waits for ever, and the activations that are alive at once fit into memory. Pure functions.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "plan/replay.h"

namespace echelon {

struct ScheduleLimits {
  std::vector<double> kept_bytes = {};  // of a stage, for each micro-batch that is alive; by stage
  double most_bytes = std::numeric_limits<double>::infinity();  // on a rank
};

struct ScheduleCheck {
  std::vector<std::string> problems;  // none: it can be run
  // The most micro-batches that are alive at once (from forward to the last pass), by rank and stage.
  std::vector<std::vector<int>> live;
};

ScheduleCheck check_schedule(const PipelineSchedule& schedule, std::span<const StageMessage> messages,
                             const ScheduleLimits& limits = {});

}  // namespace echelon
