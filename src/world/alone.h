#pragma once
// A world with one rank: this process, with the machine's own clock and disk. There is no other rank to send to.

#include <memory>

#include "world/world.h"

namespace echelon {

std::unique_ptr<World> make_world_alone(std::uint64_t seed = 0);

}  // namespace echelon
