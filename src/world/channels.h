#pragma once
// Which channels of a world are used for what. Groups of ranks count upwards from the first; each service that a world
// has once has one of the last. Tests may use any.

#include "world/world.h"

namespace echelon {

constexpr Channel first_group_channel = 1;

constexpr Channel mailbox_channel = 0xFFFFFFFC;     // of Mailbox (world/mailbox/mailbox.h)
constexpr Channel silent_channel = 0xFFFFFFFD;      // nobody sends on it: a receive ends only if the job fails
constexpr Channel clock_channel = 0xFFFFFFFE;       // comparing the clocks of ranks
constexpr Channel host_ranks_channel = 0xFFFFFFFF;  // finding the ranks of one machine, while a world is made

}  // namespace echelon
