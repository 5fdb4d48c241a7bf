#pragma once
// Some ranks of a world as a world of their own, numbered from 0: for programs that are written for all ranks of a
// world, where several of them run side by side or one inside the other (replicas that are split,
// parallel/planned/split_trainer.h). Time, tasks, disk, status and counted traffic are the outer world's; there is no
// shared memory and no native all-reduce, which belong to all of its ranks. Failures name ranks of the outer world.
//
// Messages have channels of their own for each `number` (1 to 15), so that two sub-worlds of one rank and the world
// around them do not meet. The outer world must outlive it.

#include <memory>
#include <vector>

#include "world/world.h"

namespace echelon {

// `ranks` of the outer world, in the order in which they are numbered; this rank is one of them. Not collective.
std::unique_ptr<World> make_sub_world(World& outer, std::vector<Rank> ranks, int number);

// What people call a rank: its number in the outermost world.
Rank rank_in_job(const World& world, Rank rank);

}  // namespace echelon
