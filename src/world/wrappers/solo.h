#pragma once
// A rank of a world that looks as if it were alone: one rank, nobody to send to, no memory in common. Time, disk, tasks
// and what it says it is doing are still those of the world it lives in. For programs that know how to work alone, and
// shall do so inside of a job.

#include <memory>

#include "world/world.h"

namespace echelon {

std::unique_ptr<World> make_solo(World& inner);  // which must outlive it

}  // namespace echelon
