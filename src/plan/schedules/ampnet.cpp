// AMPNet has no list: a stage runs whatever message arrives (parallel/planned/ampnet_engine.h). If all stages took the
// same time it would be this: one forward, one backward, with as many micro-batches alive on every stage as there may
// be under way.

#include <algorithm>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

PipelineSchedule make_ampnet(const ScheduleShape& s) {
  PipelineSchedule schedule{.stages = s.ranks, .micro_batches = s.micro_batches, .ranks = {}};
  for (int stage = 0; stage < s.ranks; ++stage)
    schedule.ranks.push_back(one_f_one_b_list(stage, 0, s.micro_batches, std::min(s.micro_batches, s.ranks - stage)));
  return schedule;
}

double never_empty(const ScheduleShape&) { return 0; }

}  // namespace

ScheduleKind ampnet_schedule() {
  return {.name = "ampnet",
          .about = "every stage runs what arrives and updates by itself: a result that depends on who is faster",
          .make = make_ampnet,
          .refusal = refuse_chunks,
          .bubble = never_empty,
          .own_result = true};
}

}  // namespace echelon
