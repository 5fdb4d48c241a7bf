#pragma once
// A model's training graph cut into stages, for every size of slice that occurs (the last batch of an epoch is
// smaller). The partition into layers is that of the largest slice. One thread uses it.

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
  StagePlans(const models::Model& model, const PlanLayout& layout, std::int64_t largest_slice);

  struct Slice {
    PlacedGraph placed;
    std::vector<std::unique_ptr<const StagePlan>> plans;  // by stage and part; null: nobody has asked for it
    const StagePlan& of(int stage, int part) const {
      return *plans[static_cast<std::size_t>(stage * placed.parts + part)];
    }
  };
  // Cuts these, if that slice has not been cut yet: always with the same ones.
  const Slice& prepare(std::int64_t slice, const std::vector<HostedStage>& wanted);
  bool has(std::int64_t slice) const { return slices_.contains(slice); }
  const Slice& at(std::int64_t slice) const { return slices_.at(slice); }

  Graph whole(std::int64_t slice) const;  // the training graph before it is cut
  const PlanLayout& layout() const { return layout_; }
  const StagePartition& partition() const { return partition_; }
  std::int64_t largest_slice() const { return largest_slice_; }

 private:
  const models::Model& model_;
  const PlanLayout layout_;
  const std::int64_t largest_slice_;
  StagePartition partition_;
  std::map<std::int64_t, Slice> slices_;
};

}  // namespace echelon
