#include "plan/batch_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/glob.h"
#include "plan/legal.h"

namespace echelon {

namespace {

// One rank's list, written from top to bottom.
class BatchSplitList {
 public:
  BatchSplitList(const BatchSplitShape& shape, int rank) : shape_(shape), rank_(rank) {}

  std::vector<StageTask> run() {
    if (shape_.alternating)
      alternating();
    else if (shape_.scheme == "a")
      whole_batch();
    else if (shape_.scheme == "b")
      rank_by_rank();
    else if (shape_.scheme == "pipelined")
      pipelined();
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

  // Stage by stage, down and back up, with some turns at once.
  void alternating() {
    const int each = shape_.turns_at_once();
    for (int begin = 0; begin < shape_.turns(); begin += each) {
      const auto phase = [&](Pass pass, int stage) {
        for (int turn = begin; turn < std::min(begin + each, shape_.turns()); ++turn)
          if (shape_.by_batch(stage))
            later(pass, stage, rank_ * shape_.turns() + turn);
          else
            for (int r = 0; r < shape_.ranks; ++r) later(pass, stage, r * shape_.turns() + turn);
      };
      for (int stage = 0; stage < shape_.stages; ++stage) phase(Pass::forward, stage);
      for (int stage = shape_.stages - 1; stage >= 0; --stage) phase(Pass::backward, stage);
    }
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

  // In slot u every turn that is under way gets through one group of segments, between the first layers' forward pass
  // of turn u and their backward pass of the turn that has been through all groups.
  void pipelined() {
    const std::vector<std::vector<StageTask>> groups = segment_groups();
    const int turns = shape_.turns(), depth = static_cast<int>(groups.size());
    for (int slot = 0; slot < turns + depth + 1; ++slot) {
      if (slot < turns) first(Pass::forward, slot);
      for (int g = depth - 1; g >= 0; --g) {
        const int turn = slot - 1 - g;
        if (turn < 0 || turn >= turns) continue;
        for (int r = 0; r < shape_.ranks; ++r)
          for (StageTask task : groups[static_cast<std::size_t>(g)]) {
            task.micro_batch = r * turns + turn;
            list_.push_back(task);
          }
      }
      if (const int turn = slot - depth - 1; turn >= 0) first(Pass::backward, turn);
    }
  }

  // What a micro-batch goes through in the later layers, cut where something is sent. The loss sends nothing: the last
  // segment forward and the first one backward are one group.
  std::vector<std::vector<StageTask>> segment_groups() const {
    std::vector<std::vector<StageTask>> groups;
    const auto add = [&](Pass pass, int stage) {
      for (int s = 0; s < segments_of(shape_.segments, stage, pass); ++s) {
        const StageTask task{pass, stage, 0, s};
        if (pass == Pass::backward && stage == shape_.stages - 1 && s == 0)
          groups.back().push_back(task);
        else
          groups.push_back({task});
      }
    };
    for (int stage = 1; stage < shape_.stages; ++stage) add(Pass::forward, stage);
    for (int stage = shape_.stages - 1; stage > 0; --stage) add(Pass::backward, stage);
    return groups;
  }

  const BatchSplitShape& shape_;
  const int rank_;
  std::vector<StageTask> list_;
};

}  // namespace

const std::vector<std::string>& batch_schemes() {
  static const std::vector<std::string> names{"a", "b", "c", "pipelined"};
  return names;
}

PipelineSchedule batch_split_schedule(const BatchSplitShape& shape) {
  invariant(shape.micro_batches % shape.ranks == 0 && shape.stages > 1, "ranks have equally many micro-batches");
  PipelineSchedule schedule;
  schedule.stages = shape.stages;
  schedule.micro_batches = shape.micro_batches;
  schedule.in_order = !shape.in_turns();
  schedule.segments = shape.segments;
  for (int r = 0; r < shape.ranks; ++r) schedule.ranks.push_back(BatchSplitList(shape, r).run());
  return schedule;
}

std::vector<int> batch_split_order(const BatchSplitShape& shape) {
  std::vector<int> order;
  for (int m = 0; m < shape.micro_batches; ++m)
    order.push_back(shape.in_turns() ? m % shape.ranks * shape.turns() + m / shape.ranks : m);
  return order;
}

int BatchSplitShape::buffers() const {
  if (alternating) return turns_at_once();
  return scheme == "c" ? 2 : turns();
}

int BatchSplitShape::part_as_stage(int stage, int part) const {
  int before = 0;
  for (int s = 0; s < stage; ++s) before += by_batch(s) ? 1 : ranks;
  return before + (by_batch(stage) ? 0 : part);
}

PipelineSchedule with_parts_as_stages(const PipelineSchedule& schedule, const BatchSplitShape& shape) {
  PipelineSchedule parts = schedule;
  parts.stages = shape.part_as_stage(shape.stages, 0);
  if (!schedule.segments.empty()) parts.segments.clear();
  for (int stage = 0; stage < shape.stages && !schedule.segments.empty(); ++stage)
    for (int part = 0; part < (shape.by_batch(stage) ? 1 : shape.ranks); ++part)
      parts.segments.push_back(schedule.segments[static_cast<std::size_t>(stage)]);
  for (int r = 0; r < schedule.ranks_count(); ++r)
    for (StageTask& task : parts.ranks[static_cast<std::size_t>(r)]) task.stage = shape.part_as_stage(task.stage, r);
  return parts;
}

std::vector<StageMessage> with_parts_as_stages(std::span<const StageMessage> messages, const BatchSplitShape& shape) {
  std::vector<StageMessage> parts;
  for (StageMessage m : messages) {
    if (m.inside_stage()) continue;
    m.buffers = buffers_of(m) * (shape.by_batch(m.from) ? 1 : shape.ranks);  // a set for each rank's micro-batches
    m.from = shape.part_as_stage(m.from, m.from_part), m.to = shape.part_as_stage(m.to, m.to_part);
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
  if (plan.alternating > 0 && plan.scheme == "pipelined")
    why.push_back("scheme = \"pipelined\" needs layers that are split by batch first and others then: take a, b or c");
  if (plan.scheme == "pipelined" && plan.recompute != "none")
    why.push_back(fmt::format("scheme = \"pipelined\" cannot be combined with recompute={}: take c", plan.recompute));
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
  bool first = true;
  for (const std::string& layer : facts.layers) {
    const LayerRule* rule = rule_of(plan.layers, layer);
    const bool batch = rule && rule->split == "batch";
    if (first && !batch && rule && rule->ways != 1)
      why.push_back(
          fmt::format("'{}' comes before all layers that are split by batch: the first layers have to be, so that "
                      "every rank begins "
                      "with its own micro-batches",
                      layer));
    first = first && !batch && !(rule && rule->ways != 1);
    if (batch && rule->stage > 0 && plan.alternating == 0)
      why.push_back(fmt::format("'{}' is split by batch, so it is on stage 0, not {}", layer, rule->stage));
  }
  for (const LayerRule& rule : plan.layers)
    if (plan.alternating > 0 && rule.stage >= 0)
      why.push_back(fmt::format(
          "stage = {} of '{}': layers split by batch and others take turns, and that decides the stages; leave it out",
          rule.stage, rule.match));
}

}  // namespace echelon
