#include <fmt/format.h>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

PipelineSchedule make_gpipe(const ScheduleShape& s) {
  PipelineSchedule schedule{.stages = s.ranks, .micro_batches = s.micro_batches, .ranks = {}};
  for (int stage = 0; stage < s.ranks; ++stage)
    schedule.ranks.push_back(one_f_one_b_list(stage, 0, s.micro_batches, s.micro_batches));
  return schedule;
}

// (p - 1) / (m + p - 1), as in the paper.
double flush_bubble(const ScheduleShape& s) {
  const double p = s.ranks, m = s.micro_batches;
  return (p - 1) / (m + p - 1);
}

PipelineSchedule make_one_f_one_b(const ScheduleShape& s) {
  PipelineSchedule schedule{.stages = s.ranks, .micro_batches = s.micro_batches, .ranks = {}};
  for (int stage = 0; stage < s.ranks; ++stage)
    schedule.ranks.push_back(one_f_one_b_list(stage, 0, s.micro_batches, s.ranks - stage));
  return schedule;
}

}  // namespace

std::string refuse_chunks(const ScheduleShape& shape) {
  return shape.chunks == 1
             ? ""
             : fmt::format("has one stage on each rank, not {}: only interleaved and zero_bubble have chunks",
                           shape.chunks);
}

std::vector<StageTask> one_f_one_b_list(int stage, int first, int last, int warm_up) {
  std::vector<StageTask> list;
  int forward = first;
  for (int backward = first; backward < last; ++backward) {
    for (; forward < last && forward < backward + warm_up; ++forward) list.push_back({Pass::forward, stage, forward});
    list.push_back({Pass::backward, stage, backward});
  }
  return list;
}

ScheduleKind gpipe_schedule() {
  return {"gpipe", "all forward passes, then all backward passes", make_gpipe, refuse_chunks, flush_bubble};
}

ScheduleKind one_f_one_b_schedule() {
  return {"1f1b", "one forward, one backward: at most as many micro-batches alive as stages", make_one_f_one_b,
          refuse_chunks, flush_bubble};
}

}  // namespace echelon
