#pragma once
// Which channels of a world are used for what. Groups of ranks count upwards from the first; each service that a world
// has once has one of the last. Tests may use any.

#include "world/world.h"

namespace echelon {

constexpr Channel first_group_channel = 1;

// Of a split model (parallel/planned/):
constexpr Channel first_stage_channel = 0x40000000;  // between stages, one for each message
constexpr Channel model_part_channel = 0x3FFFFFFF;   // parameters and state, to and from rank 0 and between stages
constexpr Channel step_permit_channel = 0x3FFFFFFD;  // whether a step begins, from rank 0
constexpr Channel step_report_channel = 0x3FFFFFFC;  // what a step came to, to rank 0

constexpr Channel mailbox_channel = 0xFFFFFFFC;     // of Mailbox (world/mailbox/mailbox.h)
constexpr Channel silent_channel = 0xFFFFFFFD;      // nobody sends on it: a receive ends only if the job fails
constexpr Channel clock_channel = 0xFFFFFFFE;       // comparing the clocks of ranks
constexpr Channel host_ranks_channel = 0xFFFFFFFF;  // finding the ranks of one machine, while a world is made

}  // namespace echelon
