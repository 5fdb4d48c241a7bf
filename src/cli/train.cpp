// `echelon train`: from a recipe to a trained network in a run folder.

#include "base/error.h"
#include "cli/train_rank.h"
#include "cli/verbs.h"
#include "run/job.h"

namespace echelon::cli {

namespace {

void train(const TrainSettings& s) {
  const auto disk = make_real_disk();
  Problems problems;
  const PreparedRun prepared = prepare_run(*disk, s.recipe, s.overrides, problems, data::usual_places(), s.system);
  problems.throw_if_any(s.recipe);
  TrainingJob job = make_job(prepared);
  job.stragglers = s.world.stragglers;
  run_on_world(s.world, {.seed = prepared.recipe.train.seed, .hears_signals = true},
               [&](World& world) { train_rank(world, s, prepared, job); });
}

}  // namespace

void add_train(Verb program) {
  const Verb verb = program.add_subcommand("train", "Train a network as a recipe says");
  auto s = std::make_shared<TrainSettings>();
  verb.add_option("recipe", s->recipe, "A recipe (TOML); `echelon init` writes one").required();
  verb.add_option("--set", s->overrides, "Change one setting of the recipe: --set optim.lr=0.05").one_each_time();
  verb.add_option("--system", s->system,
                  "How workers train together: a name of `echelon systems`, or a file (default: exact all-reduce)");
  add_world_flags(verb, s->world);
  add_straggler_flag(verb, s->world);
  verb.add_option("--run", s->run, "The run's folder (default: a new one in runs/)");
  verb.add_flag("--resume", s->resume, "Go on from the last checkpoint of --run, or of this recipe's newest run");
  verb.add_flag("--trace", s->trace, "Write trace.json for Perfetto or chrome://tracing into the run's folder");
  verb.add_flag("--json", s->json, "Print one JSON object with the result as the last line");
  verb.footer(
      "Examples:\n"
      "  echelon train recipes/demo.toml\n"
      "  echelon train recipes/demo.toml --set train.epochs=20 --set optim.lr=0.02\n"
      "  echelon train recipes/demo.toml --resume          after Ctrl-C, a crash or a kill\n"
      "  echelon train recipes/demo.toml --workers 2       two processes, the same weights\n"
      "  echelon train recipes/demo.toml --workers 4 --system easgd --set when.tau=10\n"
      "  echelon train recipes/demo.toml --workers 4 --link 100mbit --straggler rank=1,factor=4\n"
      "Ctrl-C and SIGTERM save and stop; a second one stops at once.");
  verb.action([s] { train(*s); });
}

}  // namespace echelon::cli
