#pragma once
// What the ranks of an asynchronous plan tell each other about steps besides the stages' own messages. Rank 0 says
// whether a step begins, so that all end after the same one; every other rank reports what a step came to when it has
// updated its weights. Nobody waits for all: rank 0 hears of a step when its own part of it is over, which is the last.
//
// One thread uses it. Allocates nothing after construction. Throws PeerLost, Mismatch, TooLate.

#include <cstdint>
#include <vector>

#include "collective/group.h"

namespace echelon {

struct StageReport {
  double loss = 0, correct = 0;  // summed over what the rank knows
  std::int64_t asks_to_stop = 0;
};

class StepControl {
 public:
  // At most so many steps are under way at once. The group, of all ranks, must outlive it.
  StepControl(Group& group, int steps);

  bool begins(std::int64_t step, bool go);                     // rank 0 decides, the others learn it
  StageReport report(std::int64_t step, StageReport of_rank);  // rank 0: the sum over all ranks; elsewhere its own
  void drain();                                                // until all that was sent has arrived

 private:
  struct Outgoing {  // of one step, to one rank
    std::int64_t go = 0;
    StageReport report;
    Work work;
    Rank to = 0;
  };
  Outgoing& free_slot(std::int64_t step, Rank to);
  void wait(Work& work, Rank peer);

  Group& group_;
  World& world_;
  const std::size_t steps_;
  std::vector<Outgoing> outgoing_;  // by step and rank
};

}  // namespace echelon
