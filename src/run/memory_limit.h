#pragma once
// A limit on what each rank of a training may allocate (`--memory 1.2GiB`): kept or refused before the start, by what
// the plan is known to need (parallel/planned/plan_view.h), with plans that would fit.

#include <cstddef>
#include <string>

#include "parallel/planned/plan_view.h"
#include "plan/spec.h"
#include "recipe/prepare.h"

namespace echelon {

// "1.2GiB", "800MiB", "4096": bytes. BadInput naming `flag` for what is none.
std::size_t read_memory_size(const std::string& text, const std::string& flag);

// What a plan makes of a run's model; `plan` is legal, and `data` is filled in.
PlanView view_run_plan(const PreparedRun& prepared, const PlanSpec& plan);

// Adds a problem if some rank would allocate more than `limit` bytes, with up to three plans for as many workers that
// need less.
void check_memory_limit(const PreparedRun& prepared, const PlanSpec& plan, int workers, std::size_t limit,
                        Problems& problems);

}  // namespace echelon
