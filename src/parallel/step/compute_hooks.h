#pragma once
// Who takes part in the computation of a gradient besides the cores. Every hook may be empty. Set them between steps.

#include <cstddef>
#include <functional>

#include "collective/topology.h"
#include "graph/program.h"
#include "parallel/step/span.h"
#include "parallel/step/thin_product.h"
#include "plan/schedule.h"

namespace echelon {

// Is told of every operation by the thread of the core that ran it.
struct Watch {
  std::function<double()> now;
  std::function<void(int core, const Node& node, double begin, double end)> on_node;
  std::function<void(const Span&)> on_span = {};  // of core 0, besides operations
  // A pass of a stage on a micro-batch, of a model that is split.
  std::function<void(const StageTask&, double begin, double end)> on_task = {};

  void span(const Span& span) const {
    if (on_span) on_span(span);
  }
};

struct ComputeHooks {
  // A bucket of the gradient is complete on all cores of this rank. Called once for each bucket of a step with its
  // index, by any core, while others still compute.
  std::function<void(std::size_t bucket)> bucket_complete;
  // Is offered each shard's factors of a gradient (parallel/step/thin_product.h) by the core that has them, while
  // others still compute. If it takes them (true), they are not multiplied, and that part of the gradient means
  // nothing.
  std::function<bool(const ShardFactors&)> take_factors;
  // Called by every core before a node of the forward pass reads parameters, for each range that it reads. It may wait
  // until they are there. Needs `announce`.
  std::function<void(Range)> before_reading;
  // Asked by core 0 before each further one of its shards. False: the rest of the batch is left out, and the gradient
  // is the mean over the samples that were done. The first shard of a core is always done.
  std::function<bool()> keep_going;
  Watch watch;
  bool announce = false;  // sets the rank's status and lets simulated time pass
  double race_rate = 0;   // where cores race (ComputeSettings::race): how far a shard's gradient moves the weights
  double slowness = 1;    // every computation takes that many times as long: an experiment
};

}  // namespace echelon
