#pragma once
// Who uses which channels of a world. Groups of ranks count upwards from the first; what there is once in a world has
// one of the last. Tests may use any.

#include "world/world.h"

namespace echelon {

constexpr Channel first_group_channel = 1;

constexpr Channel mailbox_channel = 0xFFFFFFFC;     // messages (world/mailbox/mailbox.h)
constexpr Channel silent_channel = 0xFFFFFFFD;      // nobody sends on it: who waits there hears only of the world's end
constexpr Channel clock_channel = 0xFFFFFFFE;       // what time it is elsewhere
constexpr Channel host_ranks_channel = 0xFFFFFFFF;  // who shares a machine, while a world is made

}  // namespace echelon
