#pragma once
// Norms over all parameters of a model whose parameters are on several ranks: every rank brings the sums of squares of
// the blocks that it speaks for (optim/update.h), and all fold all of them in the order of the whole model. One
// all-gather for each phase of the update that needs it. Allocates nothing after construction. One thread uses it.

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
  // `replica` has the ranks of one replica in order, `everyone` all ranks; where ranks share the optimizer's state each
  // speaks for what it owns. The stages are this rank's. All must outlive it.
  NormGather(Group& replica, Group& everyone, const PlanLayout& layout, const WholeModel& whole,
             const std::vector<std::unique_ptr<StageCompute>>& stages);
  // Collective: after all stages have run the phase, before they fold it.
  void run(int phase);

 private:
  struct Squares {  // of a block
    double gradient = 0, weights = 0;
  };
  Group& group_;
  const std::vector<std::unique_ptr<StageCompute>>& stages_;
  struct Own {
    std::size_t stage;  // among `stages_`
    std::size_t count;  // blocks, one after the other in `blocks_`
  };
  std::vector<Own> own_;
  std::vector<std::size_t> blocks_;  // of the whole model, those of the group's first rank first
  std::vector<Squares> squares_;     // the same
  std::vector<Range> bytes_of_;      // by rank of the group: its part of `squares_`
};

}  // namespace echelon
