// `echelon train`: from a recipe to a trained network in a run folder.

#include <algorithm>

#include "base/error.h"
#include "cli/foresight/run_prediction.h"
#include "cli/training/elastic.h"
#include "cli/training/elastic_nodes.h"
#include "cli/training/experiment_flags.h"
#include "cli/training/find_lr.h"
#include "cli/training/folds.h"
#include "cli/training/stages.h"
#include "cli/training/sweep.h"
#include "cli/training/train_folder.h"
#include "cli/training/train_rank.h"
#include "cli/verbs.h"
#include "graph/program.h"
#include "run/fast_memory.h"
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

bool splits_over_cores(Disk& disk, const PreparedRun& prepared, const TrainSettings& s) {
  if (s.world.cores <= 1 || s.plan == "auto" || s.elastic != Elastic::no || nodes_come_and_go(s)) return false;
  Problems elsewhere;  // complete() tells of them
  return cores_can_be_ranks(prepared, read_run_plan(disk, prepared.recipe, s.plan, elsewhere));
}

using OwnMetrics = std::function<MetricValues(const EvaluatedModel&)>;

// Checks what is known before the workers are, and makes the job. Throws all problems.
std::shared_ptr<ReadyJob> complete(Disk& disk, PreparedRun prepared, const TrainSettings& s, Problems& problems) {
  const auto initial = initial_weights(disk, s, prepared, problems);
  const int workers = known_workers(s.world);
  const bool choosing = s.plan == "auto";
  if (choosing) problems.throw_if_any(s.recipe);
  PlanSpec plan = choosing ? choose_plan(prepared, s.world, workers, s.memory)
                           : read_run_plan(disk, prepared.recipe, s.plan, problems);
  if (plan == PlanSpec{} && problems.empty()) plan = plan_in_fast_memory(prepared, workers, problems);
  if (s.world.ranks_each > 1) plan = with_cores_as_ranks(plan, s.world.ranks_each);
  if (problems.empty()) {
    const PlanSpec legal = check_run_plan(prepared, plan, workers, cores_asked(s.world), problems);
    if (!s.memory.empty() && workers > 0 && problems.empty())
      check_memory_limit(prepared, legal, workers,
                         read_memory_size(s.memory, "--memory") / static_cast<std::size_t>(s.world.ranks_each),
                         problems);
    if (!problems.empty() && s.world.ranks_each > 1)
      problems.add({},
                   fmt::format("--cores {}: each core of a worker is a rank of a split model, so there are {} ranks",
                               s.world.cores, workers));
  }
  if (s.world.world == "sim") check_simulated_workers(prepared, expected_world(s.world).workers, problems);
  problems.throw_if_any(s.recipe);
  auto ready = std::make_shared<ReadyJob>(std::move(prepared));
  ready->job.initial = initial;
  ready->job.stragglers = s.world.stragglers;
  ready->job.byzantine = s.world.byzantine;
  check_byzantine(s.world.byzantine, ready->job.composition.get(), workers, has_labels(ready->prepared.train->info()),
                  problems);
  problems.throw_if_any(s.recipe);
  ready->job.plan = plan;
  return ready;
}

void train(const TrainSettings& given, std::int64_t folds, const std::vector<std::string>& world_words,
           OwnMetrics own_metrics = {}) {
  TrainSettings s = given;
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
  if (problems.empty() && splits_over_cores(*disk, prepared, s)) make_cores_ranks(s.world);
  const std::shared_ptr<ReadyJob> ready = complete(*disk, std::move(prepared), s, problems);
  if (s.find_lr) return find_lr(*disk, s, ready->prepared, ready->job);
  ready->job.own_metrics = own_metrics;
  const LaunchOptions launch{.seed = ready->prepared.recipe.train.seed, .hears_signals = true};
  TrainSettings staged = s;
  if (!s.stages.empty()) {
    const Stages stages = read_stages(*disk, s.stages, ready->prepared);
    staged.replayed = stages.changes;
    if (!s.quiet) fmt::print(stderr, "{}", stages.in_words());
  }
  const PrepareJob prepare = [&](const TrainSettings& other) {
    Problems found;
    PreparedRun run = prepare_settings(*disk, other, found);
    auto next = complete(*disk, std::move(run), other, found);
    next->job.own_metrics = own_metrics;
    return next;
  };
  if (nodes_come_and_go(s)) return run_elastic_nodes(staged, launch, ready, prepare);
  if (s.elastic != Elastic::no) return run_elastic(staged, launch, ready, prepare);
  TrainSettings chosen = s;
  if (s.plan == "auto") chosen.plan = to_string(ready->job.plan);
  const Composition* system = ready->job.composition.get();
  const bool fills_cores = system && system->exchange->traits().works_alone;  // with small steps too
  if (s.world.cores == 0 && s.world.world != "sim" && !ready->job.plan.splits_model() && !fills_cores &&
      is_small_step(ready->prepared))
    chosen.world.cores = 1, chosen.world.cores_chosen = true;
  chosen.predicted = predict_run(ready->prepared, ready->job.plan, chosen.world, known_workers(s.world));
  try {
    run_on_world(chosen.world, launch, [&](World& world) { train_rank(world, chosen, ready->prepared, ready->job); });
  } catch (const Error&) {
    if (s.world.world == "sim") fmt::print(stderr, "the same happens again with: {}\n", s.command());
    throw;
  }
}

// The lines of the journal that --replay names.
std::vector<JournalLine> journal_of(const TrainSettings& s) {
  const auto disk = make_real_disk();
  const std::string path = s.replay.ends_with(".jsonl") ? s.replay : open_run(*disk, s.root, s.replay).journal();
  if (!disk->exists(path)) bad_input("{}: there is no journal to replay, so nothing was changed in that run", path);
  std::vector<JournalLine> lines = read_journal(*disk, path);
  const bool needs_launcher =
      std::ranges::any_of(lines, [](const JournalLine& l) { return l.request.action != "rate"; });
  if (needs_launcher && s.elastic == Elastic::no && !nodes_come_and_go(s))
    bad_input("{}: workers or systems were changed in that run, so this one needs --elastic too", path);
  return lines;
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
                  "How the model is split: data=2,pipeline=2,schedule=1f1b, a file (docs/plans.md), or auto: the best "
                  "(docs/foresight.md); the result does not depend on it");
  verb.add_option("--memory", s->memory,
                  "What a worker may allocate: 1.2GiB; a plan that needs more is refused, with those that fit");
  auto world_flags = std::make_shared<std::vector<Flag>>(add_world_flags(verb, s->world));
  for (const Flag& flag : add_trouble_flags(verb, s->world)) world_flags->push_back(flag);
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
  verb.add_option("--check-replicas", s->check_replicas,
                  "Exact training: after every so many steps all workers compare their weights, and one step is "
                  "computed twice; a wrong worker is found, named, and left out the second time. Implies --elastic")
      .range(1, 1000);
  verb.add_texts(
          "--flip-bit",
          [s = s.get()](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) s->flips.push_back(read_flip(text));
          },
          "An experiment with --check-replicas: a bit changes in a worker's weights, rank=1,step=20, or in its part of "
          "the gradient, rank=1,step=20,of=gradient. May be said again")
      .one_each_time();
  auto keep = std::make_shared<std::string>();
  verb.add_option(
      "--keep", *keep,
      "What is kept of an elastic run: buddy, a copy of its state after every step; replay, a copy every 50 "
      "steps, and the steps since then are done again; checkpoint, none but those on the disk (default: "
      "buddy for exact training, else replay)");
  const Flag restarts =
      verb.add_option(
              "--max-restarts", s->max_restarts,
              "How often lost workers are replaced before the run ends (default: as often as it takes, if steps "
              "are done in between). Implies --elastic")
          .range(0, 1000000);
  verb.add_option("--replay", s->replay,
                  "Change what was changed in another run, at the same steps: its folder, or its journal.jsonl");
  verb.add_option("--stages", s->stages,
                  "What changes while it trains, after which epochs: a name in recipes/stages, or a file "
                  "(docs/elastic.md). Implies --elastic");
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
  verb.action([s, resume, elastic, folds, world_flags, restarts, keep] {
    s->elastic = read_elastic(*elastic);
    if (s->check_replicas > 0 && s->elastic == Elastic::no) s->elastic = Elastic::replace;
    if (!s->stages.empty() && !s->replay.empty())
      bad_input("--stages and --replay both say what changes: leave one out");
    if (!s->stages.empty() && s->elastic == Elastic::no) s->elastic = Elastic::replace;
    s->keep = read_keep(*keep);
    if (s->keep != Keep::usual && s->elastic == Elastic::no && s->world.nodes.find(':') == std::string::npos)
      bad_input("--keep says what an elastic run keeps: say --elastic too");
    if (s->keep == Keep::checkpoint && s->world.nodes.find(':') != std::string::npos)
      bad_input("--keep checkpoint: machines that come and go have no disk in common; say buddy or replay");
    if (restarts.given() && s->world.nodes.find(':') != std::string::npos)
      bad_input("--max-restarts is for workers of one machine: with --nnodes MIN:MAX they come and go without a limit");
    if (restarts.given() && s->elastic == Elastic::no) s->elastic = Elastic::replace;
    if (!s->flips.empty() && s->check_replicas == 0) bad_input("--flip-bit belongs to --check-replicas");
    if (s->elastic != Elastic::no && s->trace)
      bad_input("--trace is of one generation of workers: leave out --elastic, or --trace");
    if (*resume != "" && *resume != "true" && *resume != "auto")
      bad_input("--resume={}: it is --resume, or --resume=auto to start where there is no run yet", *resume);
    s->resume = resume->empty() ? Resume::no : *resume == "auto" ? Resume::automatic : Resume::yes;
    if (!s->replay.empty()) s->replayed = journal_of(*s);
    if (s->find_lr && is_sweep(s->overrides)) bad_input("--find-lr is for one recipe: give --set one value");
    if (!s->svg.empty() && !s->find_lr) bad_input("--svg belongs to --find-lr");
    if (!is_sweep(s->overrides)) return train(*s, *folds, given_words(*world_flags));
    if (*folds > 0) bad_input("--folds and several values of one --set: train one sweep for each, or one set of folds");
    sweep(*s, given_words(*world_flags));
  });
}

}  // namespace echelon::cli
