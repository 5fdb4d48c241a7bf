// `echelon check`: every problem of a recipe at once, before anything runs.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/training/world_flags.h"
#include "cli/verbs.h"
#include "recipe/prepare.h"
#include "run/job.h"
#include "run/run_plan.h"
#include "world/os/cores.h"

namespace echelon::cli {

void add_check(Verb program) {
  const Verb verb = program.add_subcommand("check", "Report every problem of a recipe, with lines and cures");
  struct Settings {
    std::string recipe, system, plan;
    std::vector<std::string> overrides;
    bool json = false;
    WorldFlags world;
    std::vector<Flag> world_flags;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("recipe", s->recipe, "A recipe (TOML)").required();
  verb.add_option("--set", s->overrides, "Change one setting first: --set optim.lr=0.05").one_each_time();
  verb.add_option("--system", s->system, "Check it with this system: a name of `echelon systems`, or a file");
  verb.add_option("--plan", s->plan, "Check it with this plan: data=2,pipeline=2, or a file");
  verb.add_flag("--json", s->json, "Print one JSON object");
  s->world_flags = add_world_flags(verb, s->world);
  verb.footer(
      "Examples:\n"
      "  echelon check recipes/demo.toml\n"
      "  echelon check recipes/demo.toml --system easgd\n"
      "  echelon check recipes/demo.toml --system parameter_server --workers 4     also what needs so many workers");
  verb.action([s] {
    const auto disk = make_real_disk();
    Problems problems;
    PreparedRun prepared = prepare_run(*disk, s->recipe, s->overrides, problems, data::usual_places(), s->system);
    if (prepared.recipe.start) load_initial_weights(*disk, prepared, problems);
    ExpectedWorkers workers;
    PlanSpec plan = read_run_plan(*disk, prepared.recipe, s->plan, problems);
    if (problems.empty() && s->world.cores > 1 && cores_can_be_ranks(prepared, plan)) {
      make_cores_ranks(s->world);
      if (s->world.ranks_each > 1) plan = with_cores_as_ranks(plan, s->world.ranks_each);
    }
    if (std::ranges::any_of(s->world_flags, &Flag::given)) {
      const ExpectedWorld world = expected_world(s->world);
      workers = {world.workers, world.shares_memory};
      if (world.simulated) check_simulated_workers(prepared, world.workers, problems);
    }
    workers.plan = plan;
    check_system(prepared, workers, problems);
    if (problems.empty()) check_run_plan(prepared, plan, workers.count, cores_asked(s->world), problems);
    if (s->json) {
      nlohmann::ordered_json j{{"recipe", s->recipe}, {"ok", problems.empty()}, {"problems", nlohmann::json::array()}};
      for (const auto& p : problems.list()) {
        const std::string& file = p.place.file.empty() ? s->recipe : p.place.file;
        j["problems"].push_back({{"file", file}, {"line", p.place.line}, {"text", p.text}});
      }
      fmt::print("{}\n", j.dump());
      if (!problems.empty()) throw EndWith{2};
      return;
    }
    problems.throw_if_any(s->recipe);
    const TrainSpec& t = prepared.recipe.train;
    fmt::print("{} is fine: {} on {} samples, {} steps\n{}\n", s->recipe, prepared.model->name(),
               prepared.train->size(), prepared.total_steps, describe_batch(t.batch, t.shards, available_cores()));
    for (const std::string& note : prepared.recipe.notes) fmt::print("{}\n", note);
  });
}

}  // namespace echelon::cli
