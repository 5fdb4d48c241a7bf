#pragma once
// A model's training graph cut into stages, for every size of micro-batch that occurs (the last batch of an epoch is
// smaller). The partition into layers is that of the largest micro-batch. One thread uses it.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collective/topology.h"
#include "graph/program.h"
#include "models/model.h"
#include "plan/layout.h"
#include "plan/place.h"

namespace echelon {

struct StagePlan {
  Plan plan;
  std::array<std::size_t, 4> begin{};  // as in StageGraph
  std::array<std::vector<std::size_t>, 3> segments = {};
  struct NodeInfo {
    double flops = 0;
    enum class Kind : std::uint8_t { computes, sends, receives, gathers, contributes } kind = Kind::computes;
  };
  std::vector<NodeInfo> nodes;
  std::vector<bool> trained;  // by parameter: whether this stage computes its gradient

  std::size_t first(Pass pass) const { return begin[static_cast<std::size_t>(pass)]; }
  std::size_t last(Pass pass) const { return begin[static_cast<std::size_t>(pass) + 1]; }
  // The nodes of a task: of a pass, or of one segment of it.
  Range nodes_of(const StageTask& task) const {
    const auto& of_pass = segments[static_cast<std::size_t>(task.pass)];
    const auto s = static_cast<std::size_t>(task.segment);
    if (of_pass.empty()) return {first(task.pass), last(task.pass)};
    return {of_pass[s], s + 1 < of_pass.size() ? of_pass[s + 1] : last(task.pass)};
  }
};

// Of a micro-batch: its samples, and where these are sequences that may be shorter than the data set's, their length.
struct MicroBatchSize {
  MicroBatchSize(std::int64_t samples, std::int64_t length = 0)  // NOLINT: meant to convert
      : samples(samples), length(length) {}
  std::int64_t samples, length;  // 0: as long as they are
  friend auto operator<=>(const MicroBatchSize&, const MicroBatchSize&) = default;
};

class StagePlans {
 public:
  // The model has one phase and outlives it. `of_length`: the same model for sequences of another length.
  using OfLength = std::function<std::unique_ptr<const models::Model>(std::int64_t length)>;
  StagePlans(const models::Model& model, const PlanLayout& layout, std::int64_t largest_shard, OfLength of_length = {});

  struct CutGraph {
    PlacedGraph placed;
    std::vector<std::unique_ptr<const StagePlan>> plans;  // by stage and part; null: nobody has asked for it
    const StagePlan& of(int stage, int part) const {
      return *plans[static_cast<std::size_t>(stage * placed.parts + part)];
    }
  };
  // Cuts these, if that size has not been cut yet: always with the same ones.
  const CutGraph& prepare(MicroBatchSize size, const std::vector<HostedStage>& wanted);
  bool has(MicroBatchSize size) const { return cuts_.contains(size); }
  const CutGraph& at(MicroBatchSize size) const { return cuts_.at(size); }

  // Into how many segments exchanges between parts cut the passes of stages (plan/schedule.h).
  StageSegments segments(std::int64_t samples) const;

  Graph whole(MicroBatchSize size) const;  // the training graph before it is cut
  const PlanLayout& layout() const { return layout_; }
  const StagePartition& partition() const { return partition_; }
  std::int64_t largest_shard() const { return largest_shard_; }

 private:
  const models::Model& model_;
  const PlanLayout layout_;
  const std::int64_t largest_shard_;
  StagePartition partition_;
  const OfLength of_length_;
  std::map<MicroBatchSize, CutGraph> cuts_;
};

}  // namespace echelon
