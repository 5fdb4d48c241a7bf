#include "cli/training/predicted_plan.h"

#include "run/memory_limit.h"

namespace echelon::cli {

Json predicted_plan(const PreparedRun& prepared, const PlanSpec& plan) {
  const PlanView view = view_run_plan(prepared, plan);
  Json json{{"plan", to_string(plan)}, {"stages", Json::array()}, {"idle", view.schedule.bubble()}};
  double bytes = 0;
  for (const StageView& s : view.stages) {
    json["stages"].push_back({{"stage", s.stage}, {"part", s.part}, {"ranks", s.ranks}, {"layers", s.layers}});
    bytes += s.sends * static_cast<double>(prepared.recipe.train.shards);
  }
  if (plan.data == 1 && plan.tensor == 1 && plan.zero == 0) json["bytes_per_step"] = bytes;
  return json;
}

}  // namespace echelon::cli
