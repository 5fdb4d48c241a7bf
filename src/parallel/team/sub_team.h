#pragma once
// Some ranks of a team as a team of their own, without shared memory (world/wrappers/sub_world.h). What it waits for is
// told and counted as the whole team's, with the ranks' numbers there.

#include <memory>
#include <vector>

#include "parallel/team/team.h"

namespace echelon {

class SubTeam {
 public:
  // `ranks` of the whole, this one among them, in the order in which they are numbered; `number` as of a sub-world. The
  // whole has several ranks and outlives it. Every rank of it makes its team, at the same time.
  SubTeam(Team& whole, std::vector<Rank> ranks, int number);

  Team& team() { return team_; }

 private:
  std::unique_ptr<World> world_;
  Team team_;
};

}  // namespace echelon
