// `echelon train`: from a recipe to a trained network in a run folder.

#include "base/error.h"
#include "cli/training/elastic.h"
#include "cli/training/find_lr.h"
#include "cli/training/folds.h"
#include "cli/training/sweep.h"
#include "cli/training/train_folder.h"
#include "cli/training/train_rank.h"
#include "cli/verbs.h"
#include "graph/program.h"
#include "run/job.h"
#include "run/memory_limit.h"
#include "run/run_plan.h"

namespace echelon::cli {

PreparedRun prepare_settings(Disk& disk, const TrainSettings& s, Problems& problems) {
  if (!s.tree) return prepare_run(disk, s.recipe, s.overrides, problems, s.places, s.system);
  LoadedOptions loaded = load_options(disk, *s.tree, s.recipe, s.overrides, problems, s.system);
  return prepare_run(disk, read_recipe(s.recipe, std::move(loaded), problems), problems, s.places);
}

namespace {

// Whether a step is so little work that cores wait for each other longer than they compute. One core then makes the
// same weights sooner.
bool is_small_step(const PreparedRun& prepared) {
  constexpr double small = 2e6;  // floating-point operations, about a tenth of a millisecond
  const auto batch = static_cast<double>(prepared.recipe.train.batch);
  const std::vector<models::Phase> phases = prepared.model->training(1);
  double weights = 0, work = 0;
  for (const models::Phase& phase : phases)
    for (const Parameter& p : phase.graph.parameters()) weights += static_cast<double>(p.shape.elements());
  if (2 * weights * batch > small) return false;
  for (const models::Phase& phase : phases) work += compile(phase.graph).flops;
  return work * batch < small;
}

using OwnMetrics = std::function<MetricValues(const EvaluatedModel&)>;

void train(const TrainSettings& s, std::int64_t folds, const std::vector<std::string>& world_words,
           OwnMetrics own_metrics = {}) {
  if (s.restart && s.resume == Resume::no)
    bad_input("--restart says what --resume does if every checkpoint is damaged: add --resume");
  const auto disk = make_real_disk();
  Problems problems;
  PreparedRun prepared = prepare_settings(*disk, s, problems);
  TrainSettings of_folds = s;
  if (folds > 0 && prepared.recipe.data.items.contains("validation"))
    of_folds.overrides.emplace_back("data.validation=0");  // the flag takes its place
  if (folds == 0) folds = folds_of(prepared.recipe);
  if (folds > 0 && s.tree) bad_input("data.folds is for recipes in files: `echelon train RECIPE --folds {}`", folds);
  if (folds > 0 && s.resume != Resume::no)
    bad_input("--resume goes on with one run, not with --folds; resume a fold with --run DIR");
  if (folds > 0) return train_folds(of_folds, folds, world_words);
  const auto initial = initial_weights(*disk, s, prepared, problems);
  const PlanSpec plan = read_run_plan(*disk, prepared.recipe, s.plan, problems);
  const int workers = known_workers(s.world);
  if (problems.empty()) {
    const PlanSpec legal = check_run_plan(prepared, plan, workers, s.world.cores, problems);
    if (!s.memory.empty() && workers > 0 && problems.empty())
      check_memory_limit(prepared, legal, workers, read_memory_size(s.memory, "--memory"), problems);
  }
  if (s.world.world == "sim") check_simulated_workers(prepared, expected_world(s.world).workers, problems);
  problems.throw_if_any(s.recipe);
  TrainingJob job = make_job(prepared);
  job.initial = initial;
  if (s.find_lr) return find_lr(*disk, s, prepared, job);
  job.stragglers = s.world.stragglers;
  job.plan = plan;
  job.own_metrics = std::move(own_metrics);
  const LaunchOptions launch{.seed = prepared.recipe.train.seed, .hears_signals = true};
  if (s.elastic != Elastic::no)
    return run_elastic(
        s, launch, job, [&](int n, Problems& found) { check_run_plan(prepared, plan, n, s.world.cores, found); },
        [&](World& world, const TrainSettings& now) { train_rank(world, now, prepared, job); });
  TrainSettings chosen = s;
  if (s.world.cores == 0 && s.world.world != "sim" && !plan.splits_model() && is_small_step(prepared))
    chosen.world.cores = 1, chosen.world.cores_chosen = true;
  try {
    run_on_world(chosen.world, launch, [&](World& world) { train_rank(world, chosen, prepared, job); });
  } catch (const Error&) {
    if (s.world.world == "sim") fmt::print(stderr, "the same happens again with: {}\n", s.command());
    throw;
  }
}

}  // namespace

void train_recipe(const TrainSettings& s, OwnMetrics own_metrics) { train(s, 0, {}, std::move(own_metrics)); }

void add_train(Verb program) {
  const Verb verb = program.add_subcommand("train", "Train a network as a recipe says");
  auto s = std::make_shared<TrainSettings>();
  verb.add_option("recipe", s->recipe, "A recipe (TOML); `echelon init` writes one").required();
  verb.add_option("--set", s->overrides,
                  "Change one setting of the recipe: --set optim.lr=0.05; several values with commas are a run each")
      .one_each_time();
  verb.add_option("--system", s->system,
                  "How workers train together: a name of `echelon systems`, or a file (default: exact all-reduce)");
  verb.add_option("--plan", s->plan,
                  "How the model is split: data=2,pipeline=2,schedule=1f1b, or a file (docs/plans.md); the result does "
                  "not depend on it");
  verb.add_option("--memory", s->memory,
                  "What a worker may allocate: 1.2GiB; a plan that needs more is refused, with those that fit");
  auto world_flags = std::make_shared<std::vector<Flag>>(add_world_flags(verb, s->world));
  world_flags->push_back(add_straggler_flag(verb, s->world));
  auto folds = std::make_shared<std::int64_t>(0);
  verb.add_option("--folds", *folds, "Cross-validation: train once for each of so many folds; mean and deviation")
      .range(2, 1000);
  verb.add_option("--run", s->run, "The run's folder (default: a new one in runs/)");
  auto resume = std::make_shared<std::string>();
  verb.add_flag(
      "--resume", *resume,
      "Go on from the last checkpoint of --run, or of this recipe's newest run; --resume=auto: start if there "
      "is none");
  auto elastic = std::make_shared<std::string>();
  verb.add_flag("--elastic", *elastic,
                "A worker that is killed does not end the run: another takes its place, from the step it was at; "
                "--elastic=shrink: the others take over its work. The same weights in the end");
  verb.add_flag("--find-lr", s->find_lr, "Do not train: try rising learning rates for 100 steps, and suggest one");
  verb.add_option("--svg", s->svg, "Where --find-lr draws its curve (default: RECIPE-find-lr.svg)");
  verb.add_flag("--restart", s->restart,
                "With --resume: if every checkpoint is damaged, begin again at the first step instead of refusing");
  verb.add_flag("--trace", s->trace, "Write trace.json for Perfetto or chrome://tracing into the run's folder");
  verb.add_flag("--json", s->json, "Print one JSON object with the result as the last line");
  verb.footer(
      "Examples:\n"
      "  echelon train recipes/demo.toml\n"
      "  echelon train recipes/demo.toml --set train.epochs=20 --set optim.lr=0.02\n"
      "  echelon train recipes/demo.toml --set optim.lr=0.001,0.01,0.1       three runs, compared at the end\n"
      "  echelon train recipes/demo.toml --folds 5         cross-validation: mean and deviation of every metric\n"
      "  echelon train recipes/demo.toml --resume          after Ctrl-C, a crash or a kill\n"
      "  echelon train recipes/demo.toml --run runs/a --resume=auto       start or go on: for batch systems\n"
      "  echelon train runs/a/recipe.toml --run runs/a --resume --set train.epochs=30       make it longer\n"
      "  echelon train recipes/demo.toml --workers 2       two processes, the same weights\n"
      "  echelon train recipes/demo.toml --workers 4 --system easgd --set when.tau=10\n"
      "  echelon train recipes/demo.toml --workers 4 --plan pipeline=2     two replicas of two stages, the same "
      "weights\n"
      "  echelon train recipes/demo.toml --workers 4 --plan zero=3 --memory 64MiB     each has a part of the model\n"
      "  echelon train recipes/demo.toml --workers 4 --link 100mbit --straggler rank=1,factor=4\n"
      "  echelon train recipes/demo.toml --workers 4 --elastic     go on by itself when workers are killed\n"
      "  echelon train recipes/demo.toml --find-lr          which learning rate to take\n"
      "Ctrl-C, SIGTERM and SIGHUP save and stop; a second one stops at once.");
  verb.action([s, resume, elastic, folds, world_flags] {
    s->elastic = read_elastic(*elastic);
    if (s->elastic != Elastic::no && s->trace)
      bad_input("--trace is of one generation of workers: leave out --elastic, or --trace");
    if (*resume != "" && *resume != "true" && *resume != "auto")
      bad_input("--resume={}: it is --resume, or --resume=auto to start where there is no run yet", *resume);
    s->resume = resume->empty() ? Resume::no : *resume == "auto" ? Resume::automatic : Resume::yes;
    if (s->find_lr && is_sweep(s->overrides)) bad_input("--find-lr is for one recipe: give --set one value");
    if (!s->svg.empty() && !s->find_lr) bad_input("--svg belongs to --find-lr");
    if (!is_sweep(s->overrides)) return train(*s, *folds, given_words(*world_flags));
    if (*folds > 0) bad_input("--folds and several values of one --set: train one sweep for each, or one set of folds");
    sweep(*s, given_words(*world_flags));
  });
}

}  // namespace echelon::cli
