// A step goes through the pipeline as one: each stage runs all its micro-batches forward, later all of them backward,
// and updates its weights. Stage k of p has p - k steps under way: it runs one forward, one backward in turn from then
// on, and the pipeline never runs empty. Backward passes read the weights that the same step's forward passes read,
// which are older than the newest by now (parallel/planned/pipedream_engine.h). The lists here are those of the first
// steps.

#include <algorithm>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

PipelineSchedule make_pipedream(const ScheduleShape& s) {
  const int steps = 2 * s.ranks, m = s.micro_batches;
  PipelineSchedule schedule{.stages = s.ranks, .micro_batches = steps * m, .per_update = m, .ranks = {}};
  for (int stage = 0; stage < s.ranks; ++stage) {
    auto& list = schedule.ranks.emplace_back();
    for (const StageTask& t : one_f_one_b_list(stage, 0, steps, s.ranks - stage))
      for (int i = 0; i < m; ++i) list.push_back({t.pass, stage, t.micro_batch * m + i});
  }
  return schedule;
}

// The pipeline fills once, at the start.
double no_bubble(const ScheduleShape&) { return 0; }

}  // namespace

ScheduleKind pipedream_schedule() {
  return {.name = "pipedream",
          .about = "every stage updates by itself and the pipeline never runs empty: a result of its own",
          .make = make_pipedream,
          .refusal = refuse_chunks,
          .bubble = no_bubble,
          .own_result = true};
}

}  // namespace echelon
