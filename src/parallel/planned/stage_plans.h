#pragma once
// A model's training graph cut into stages, for every size of micro-batch that occurs (the last batch of an epoch is
// smaller). The partition into layers is that of the largest micro-batch. One thread uses it.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "graph/program.h"
#include "models/model.h"
#include "plan/layout.h"
#include "plan/place.h"

namespace echelon {

struct StagePlan {
  Plan plan;
  std::array<std::size_t, 4> begin{};  // as in StageGraph
  struct NodeInfo {
    double flops = 0;
    enum class Kind : std::uint8_t { computes, sends, receives, gathers, contributes } kind = Kind::computes;
  };
  std::vector<NodeInfo> nodes;
  std::vector<bool> trained;  // by parameter: whether this stage computes its gradient

  std::size_t first(Pass pass) const { return begin[static_cast<std::size_t>(pass)]; }
  std::size_t last(Pass pass) const { return begin[static_cast<std::size_t>(pass) + 1]; }
};

class StagePlans {
 public:
  // The model has one phase and outlives it.
  StagePlans(const models::Model& model, const PlanLayout& layout, std::int64_t largest_shard);

  struct CutGraph {
    PlacedGraph placed;
    std::vector<std::unique_ptr<const StagePlan>> plans;  // by stage and part; null: nobody has asked for it
    const StagePlan& of(int stage, int part) const {
      return *plans[static_cast<std::size_t>(stage * placed.parts + part)];
    }
  };
  // Cuts these, if that size has not been cut yet: always with the same ones.
  const CutGraph& prepare(std::int64_t samples, const std::vector<HostedStage>& wanted);
  bool has(std::int64_t samples) const { return cuts_.contains(samples); }
  const CutGraph& at(std::int64_t samples) const { return cuts_.at(samples); }

  Graph whole(std::int64_t samples) const;  // the training graph before it is cut
  const PlanLayout& layout() const { return layout_; }
  const StagePartition& partition() const { return partition_; }
  std::int64_t largest_shard() const { return largest_shard_; }

 private:
  const models::Model& model_;
  const PlanLayout layout_;
  const std::int64_t largest_shard_;
  StagePartition partition_;
  std::map<std::int64_t, CutGraph> cuts_;
};

}  // namespace echelon
