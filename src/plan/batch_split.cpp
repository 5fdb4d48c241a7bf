#include "plan/batch_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/glob.h"
#include "plan/spec.h"

namespace echelon {

namespace {

// One rank's list, written from top to bottom.
class BatchSplitList {
 public:
  BatchSplitList(const BatchSplitShape& shape, int rank) : shape_(shape), rank_(rank) {}

  std::vector<StageTask> run() {
    if (shape_.scheme == "a")
      whole_batch();
    else if (shape_.scheme == "b")
      rank_by_rank();
    else
      in_turns();
    return std::move(list_);
  }

 private:
  void first(Pass pass, int turn) { list_.push_back({pass, 0, rank_ * shape_.turns() + turn}); }
  void all_first(Pass pass) {
    for (int t = 0; t < shape_.turns(); ++t) first(pass, t);
  }
  void later(Pass pass, int stage, int micro_batch) { list_.push_back({pass, stage, micro_batch}); }

  void whole_batch() {
    all_first(Pass::forward);
    for (int stage = 1; stage < shape_.stages; ++stage)
      for (int m = 0; m < shape_.micro_batches; ++m) later(Pass::forward, stage, m);
    for (int stage = shape_.stages - 1; stage > 0; --stage)
      for (int m = 0; m < shape_.micro_batches; ++m) later(Pass::backward, stage, m);
    all_first(Pass::backward);
  }

  void rank_by_rank() {
    all_first(Pass::forward);
    for (int m = 0; m < shape_.micro_batches; ++m) {
      for (int stage = 1; stage < shape_.stages; ++stage) later(Pass::forward, stage, m);
      for (int stage = shape_.stages - 1; stage > 0; --stage) later(Pass::backward, stage, m);
    }
    all_first(Pass::backward);
  }

  // While parts of the later layers exchange what they have computed, the first layers run: forward on the next turn's
  // micro-batch, backward on the last one's.
  void in_turns() {
    first(Pass::forward, 0);
    const int turns = shape_.turns(), last = shape_.stages - 1;
    for (int turn = 0; turn < turns; ++turn) {
      const auto phase = [&](Pass pass, int stage) {
        for (int r = 0; r < shape_.ranks; ++r) later(pass, stage, r * turns + turn);
      };
      const auto next = [&] {
        if (turn + 1 < turns) first(Pass::forward, turn + 1);
      };
      const auto before = [&] {
        if (turn > 0) first(Pass::backward, turn - 1);
      };
      if (last == 1) next();
      for (int stage = 1; stage < last; ++stage) {
        phase(Pass::forward, stage);
        if (stage == 1) next();
      }
      for (int r = 0; r < shape_.ranks; ++r) {
        later(Pass::forward, last, r * turns + turn);
        later(Pass::backward, last, r * turns + turn);
      }
      before();
      for (int stage = last - 1; stage > 0; --stage) phase(Pass::backward, stage);
    }
    first(Pass::backward, turns - 1);
  }

  const BatchSplitShape& shape_;
  const int rank_;
  std::vector<StageTask> list_;
};

}  // namespace

const std::vector<std::string>& batch_schemes() {
  static const std::vector<std::string> names{"a", "b", "c"};
  return names;
}

PipelineSchedule batch_split_schedule(const BatchSplitShape& shape) {
  invariant(shape.micro_batches % shape.ranks == 0 && shape.stages > 1, "ranks have equally many micro-batches");
  PipelineSchedule schedule;
  schedule.stages = shape.stages;
  schedule.micro_batches = shape.micro_batches;
  schedule.in_order = shape.scheme != "c";
  for (int r = 0; r < shape.ranks; ++r) schedule.ranks.push_back(BatchSplitList(shape, r).run());
  return schedule;
}

std::vector<int> batch_split_order(const BatchSplitShape& shape) {
  std::vector<int> order;
  for (int m = 0; m < shape.micro_batches; ++m)
    order.push_back(shape.scheme == "c" ? m % shape.ranks * shape.turns() + m / shape.ranks : m);
  return order;
}

PipelineSchedule with_parts_as_stages(const PipelineSchedule& schedule) {
  PipelineSchedule parts = schedule;
  const int ranks = schedule.ranks_count();
  parts.stages = 1 + (schedule.stages - 1) * ranks;
  for (int r = 0; r < ranks; ++r)
    for (StageTask& task : parts.ranks[static_cast<std::size_t>(r)])
      if (task.stage > 0) task.stage = part_as_stage(task.stage, r, ranks);
  return parts;
}

std::vector<StageMessage> with_parts_as_stages(std::span<const StageMessage> messages, int ranks) {
  std::vector<StageMessage> parts;
  for (StageMessage m : messages) {
    if (m.inside_stage()) continue;
    m.buffers = buffers_of(m) * (m.from > 0 ? ranks : 1);  // one set for the micro-batches of each rank
    m.from = part_as_stage(m.from, m.from_part, ranks), m.to = part_as_stage(m.to, m.to_part, ranks);
    m.from_part = m.to_part = 0;
    parts.push_back(m);
  }
  return parts;
}

void refuse_batch_split(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (!plan.splits_batch()) {
    if (!plan.scheme.empty())
      why.push_back(fmt::format("scheme = \"{}\" needs layers with split = \"batch\"", plan.scheme));
    return;
  }
  if (plan.tensor == 1)
    why.push_back("split = \"batch\" needs tensor=2 or more: the ranks that the rest is split over");
  if (plan.pipeline > 1)
    why.push_back(fmt::format("split = \"batch\" cannot be combined with pipeline={}: leave it out", plan.pipeline));
  if (plan.zero > 0)
    why.push_back(fmt::format("split = \"batch\" cannot be combined with zero={}: leave it out", plan.zero));
  if (const int lines = std::max(plan.data, 1) * plan.tensor; facts.workers > 0 && facts.shards % lines != 0)
    why.push_back(
        fmt::format("split = \"batch\" needs equally many micro-batches for each of {} ranks, and train.shards = "
                    "{}",
                    lines, facts.shards));
  // What comes before a layer that is split by batch is split by batch too.
  std::string other;
  for (const std::string& layer : facts.layers) {
    const LayerRule* rule = rule_of(plan.layers, layer);
    const bool batch = rule && rule->split == "batch";
    if (batch && !other.empty()) {
      why.push_back(
          fmt::format("'{}' is split by batch and '{}' before it is not: only the first layers of a network can "
                      "be",
                      layer, other));
      break;
    }
    if (batch && rule->stage > 0)
      why.push_back(fmt::format("'{}' is split by batch, so it is on stage 0, not {}", layer, rule->stage));
    if (!batch && rule && rule->ways != 1 && other.empty()) other = layer;
  }
}

}  // namespace echelon
