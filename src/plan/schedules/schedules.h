#pragma once
// The rows of the table in plan/schedule.cpp, one file each.

#include "plan/schedule.h"

namespace echelon {

ScheduleKind gpipe_schedule();
ScheduleKind one_f_one_b_schedule();
ScheduleKind interleaved_schedule();
ScheduleKind zero_bubble_schedule();
ScheduleKind bidirectional_schedule();
ScheduleKind dualpipe_schedule();
ScheduleKind pipedream_schedule();
ScheduleKind ampnet_schedule();

// The refusal of schedules that have one stage on each rank.
std::string refuse_chunks(const ScheduleShape& shape);

// That of schedules in two directions.
std::string refuse_two_directions(const ScheduleShape& shape);

// The tasks of one rank under 1f1b, with `warm_up` forward passes before the first backward.
std::vector<StageTask> one_f_one_b_list(int stage, int first, int last, int warm_up);

}  // namespace echelon
