#pragma once
// `echelon plan RECIPE`: which plan is best, will it fit, how long does it take; with --sweep for many numbers of
// workers.

#include <functional>
#include <string>

#include "cli/flags.h"
#include "foresight/rank_plans.h"

namespace echelon::cli {

void add_plan_rank(Verb plan);
void add_plan_grade(Verb plan);
void add_plan_published(Verb plan);

// A ranking as JSON and as a table.
Json to_json(const foresight::RankedPlan& plan);
std::string ranking_text(const foresight::Ranking& ranking, std::size_t most);

}  // namespace echelon::cli
