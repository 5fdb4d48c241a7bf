#pragma once
// One weird trick (Krizhevsky, 2014): the first layers of a network (convolutions: much work, few weights) are data
// parallel, the others (fully connected: little work, most of the weights) are split over the same ranks. Every rank
// runs the first layers on micro-batches of its own; their outputs go to all ranks, each of which has a part of the
// later layers and runs it on the micro-batches of all. Gradients go back the same way. In a plan it is
//
//   tensor = 8
//   scheme = "c"
//   [[layer]]
//   match = "conv*"
//   split = "batch"
//
// Stage 0 has what is split by batch, later stages the rest. The three schemes are the orders in which a rank works:
//
//   a  all forward passes of the first layers, then all of the others: the whole batch is everywhere at once
//   b  all forward passes of the first layers; then one rank's micro-batches after another, forward and backward
//   c  in turns: one micro-batch of every rank at a time. While it is under way the first layers run on the next one.
//   pipelined  as c, with many turns under way. Passes of the later layers are cut wherever parts exchange what they
//      have computed (StageSegments), and every turn is one segment further than the next: what a segment sends is on
//      its way while the first layers of other turns run. It needs as many turns as there are segments, or more, and
//      memory for their activations.
//
// Layers of both kinds may also alternate (GShard: experts between layers that are split by batch): stages 0, 2, ...
// are by batch then, the others by slices, and what goes from one to the next is an all-to-all. A turn is one
// micro-batch of every rank; the schemes differ in how many turns are under way, one hiding what another waits for:
//
//   a  all          b  one          c  two
//
// What is sent is on its way while a rank works on something else. A rank's micro-batches are neighbours among the
// batch's, so with scheme c contributions to the later layers' weights are summed in another order than that of the
// micro-batches, in the same tree. Pure functions.

#include <span>
#include <string>
#include <vector>

#include "plan/replay.h"
#include "plan/schedule.h"

namespace echelon {

struct PlanSpec;
struct PlanFacts;

struct BatchSplitShape {
  int ranks = 2, micro_batches = 2;  // of a replica; the ranks divide them
  int stages = 2;
  std::string scheme = "c";
  bool alternating = false;
  StageSegments segments = {};

  int turns() const { return micro_batches / ranks; }  // micro-batches of a rank
  bool by_batch(int stage) const { return alternating ? stage % 2 == 0 : stage == 0; }
  bool in_turns() const { return scheme == "c" || scheme == "pipelined" || alternating; }
  int turns_at_once() const { return scheme == "a" ? turns() : scheme == "b" ? 1 : 2; }  // alternating
  // How many micro-batches' worth of a message between ranks can be under way.
  int buffers() const;
  // For the checker, which knows stages on one rank each: every part of a stage is a stage of its own.
  int part_as_stage(int stage, int part) const;
};

const std::vector<std::string>& batch_schemes();  // a, b, c, pipelined

// Each rank's list. All ranks have all stages: stage 0 for their own micro-batches, their part of the others for all.
PipelineSchedule batch_split_schedule(const BatchSplitShape& shape);
// The order in which every rank gets through the micro-batches in stages after the first.
std::vector<int> batch_split_order(const BatchSplitShape& shape);

PipelineSchedule with_parts_as_stages(const PipelineSchedule& schedule, const BatchSplitShape& shape);
std::vector<StageMessage> with_parts_as_stages(std::span<const StageMessage> messages, const BatchSplitShape& shape);

void refuse_batch_split(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why);

}  // namespace echelon
