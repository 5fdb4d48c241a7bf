#pragma once
// Norms over all parameters of a model whose parameters are on several ranks: every rank brings the sums of squares of
// its own blocks (optim/update.h), and all fold all of them in the order of the whole model. One all-gather for each
// phase of the update that needs it. Allocates nothing after construction. One thread uses it.

#include <memory>
#include <vector>

#include "collective/group.h"
#include "collective/topology.h"
#include "parallel/planned/stage_compute.h"
#include "parallel/planned/whole_model.h"
#include "plan/layout.h"

namespace echelon {

class NormGather {
 public:
  // `replica` has the ranks of one replica in order, and the stages are this rank's; both must outlive it.
  NormGather(Group& replica, const PlanLayout& layout, const WholeModel& whole,
             const std::vector<std::unique_ptr<StageCompute>>& stages);
  // Collective over the replica: after all stages have run the phase, before they fold it.
  void run(int phase);

 private:
  struct Squares {  // of a block
    double gradient = 0, weights = 0;
  };
  Group& replica_;
  const std::vector<std::unique_ptr<StageCompute>>& stages_;
  std::vector<std::size_t> blocks_;  // of the whole model, those of the replica's first rank first
  std::vector<Squares> squares_;     // the same
  std::vector<Range> bytes_of_;      // by rank of the replica: its part of `squares_`
};

}  // namespace echelon
