#pragma once
// The states of all ranks on rank 0, for checkpoints: every rank's state is packed into one run of bytes, whose size
// never changes. One thread uses it; everything is collective.

#include <cstddef>
#include <vector>

#include "base/state.h"
#include "parallel/team/team.h"
#include "tensor/buffer.h"

namespace echelon {

class ReplicaState {
 public:
  ReplicaState(Team& team, const std::vector<StateSpan>& own);

  void gather(const std::vector<StateSpan>& own);   // all ranks' states to rank 0
  void scatter(const std::vector<StateSpan>& own);  // and back
  std::vector<StateSpan> all();                     // rank 0: one span for each rank

 private:
  void move(bool to_first);

  Team& team_;
  std::vector<std::size_t> sizes_;  // by rank
  Buffer packed_;                   // rank 0: everybody's, its own first; else this rank's
};

}  // namespace echelon
