#include "run/memory_limit.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory_size.h"
#include "base/text.h"
#include "run/run_plan.h"
#include "run/whole_bytes.h"

namespace echelon {

std::size_t read_memory_size(const std::string& text, const std::string& flag) {
  const auto bytes = memory_size(text);
  if (!bytes) bad_input("{} {}: not a size; write 1.2GiB, 800MiB or a number of bytes", flag, text);
  return *bytes;
}

PlanView view_run_plan(const PreparedRun& prepared, const PlanSpec& plan) {
  const PlanLayout layout(plan, static_cast<int>(prepared.recipe.train.shards));
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  PlanView view = view_plan(*prepared.model, layout, (largest + layout.shards() - 1) / layout.shards(),
                            make_optim(prepared.recipe).rule->slots().size());
  if (!plan.splits_model()) view.ranks = whole_model_bytes(prepared, layout.ranks(), 1, false);
  return view;
}

namespace {

std::size_t most_bytes(const PlanView& view) {
  std::size_t most = 0;
  for (const RankBytes& rank : view.ranks) most = std::max(most, rank.all());
  return most;
}

// Plans for so many workers in which a rank needs little memory: the plainest first.
std::vector<PlanSpec> thrifty_plans(const PlanFacts& facts) {
  std::vector<PlanSpec> plans;
  for (PlanSpec plan : legal_plans(facts)) {
    if (plan.schedule != "1f1b" || plan.chunks > 1 || !plan.splits_model() || plan.recompute == "all") continue;
    plan.evaluate = "first";
    plans.push_back(plan);
  }
  const auto changes = [](const PlanSpec& p) {
    return (p.zero > 0 ? 1 : 0) + (p.pipeline > 1 ? 1 : 0) + (p.tensor > 1 ? 1 : 0) + (p.recompute == "none" ? 0 : 1);
  };
  std::ranges::stable_sort(plans, {}, changes);
  return plans;
}

}  // namespace

void check_memory_limit(const PreparedRun& prepared, const PlanSpec& plan, int workers, std::size_t limit,
                        Problems& problems) {
  if (prepared.model->training(1).size() > 1)
    return problems.add({}, "--memory: not known for a model with several phases in a training step; leave it out");
  const std::size_t needed = plan.splits_model() ? most_bytes(view_run_plan(prepared, plan))
                                                 : whole_model_bytes(prepared, workers, 1, false).front().all();
  if (needed <= limit) return;
  constexpr std::size_t most_shown = 3, most_tried = 40;
  std::string fitting;
  std::size_t shown = 0, tried = 0;
  for (const PlanSpec& other : thrifty_plans(plan_facts(prepared, workers, 1))) {
    if (shown == most_shown || ++tried > most_tried) break;
    const std::size_t bytes = most_bytes(view_run_plan(prepared, other));
    if (bytes > limit) continue;
    ++shown;
    fitting += fmt::format("{}--plan {} ({})", fitting.empty() ? "" : ", ", to_string(other),
                           human_bytes(static_cast<double>(bytes)));
  }
  problems.add(
      {},
      fmt::format("--memory: a rank needs {} with plan {}, and may have {}; {}",
                  human_bytes(static_cast<double>(needed)), to_string(plan), human_bytes(static_cast<double>(limit)),
                  fitting.empty() ? "none of the plans tried for as many workers fits: take more workers, more "
                                    "train.shards or a smaller model"
                                  : "these fit: " + fitting));
}

}  // namespace echelon
