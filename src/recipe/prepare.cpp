#include "recipe/prepare.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/description.h"
#include "recipe/prepare_elsewhere.h"
#include "recipe/prepare_parts.h"

namespace echelon {

namespace {

void check_batch(const PreparedRun& run, OptionReader& train) {
  const Recipe& recipe = run.recipe;
  const data::DatasetInfo& info = run.train->info();
  const std::int64_t batch = recipe.train.batch, samples = static_cast<std::int64_t>(info.size);
  if (batch > samples)
    train.problem("batch", fmt::format("= {} is more than the {} samples there are to train with; make it smaller",
                                       batch, samples));
  if (info.streams > 0 && info.streams != batch)
    train.problem("batch", fmt::format("= {0}, but the text is read as {1} streams: set train.batch = {1}, or "
                                       "data.streams = {0}",
                                       batch, info.streams));
  if (info.streams > 0 && recipe.schedule.growth.factor > 1)
    train.problem("batch", "cannot grow while the text is read as streams; remove [schedule.growth]");
}

// Whether workers can keep their samples.
void check_partition(const PreparedRun& run, Problems& problems) {
  if (!run.partition.fixed) return;
  OptionReader table(run.recipe.data, problems);
  const data::DatasetInfo& info = run.train->info();
  if (info.streams > 0)
    table.problem("partition",
                  "= \"fixed\" shuffles the samples of each worker, but a text that is read as streams stays in order");
  if (run.partition.dirichlet > 0 && !data::has_labels(info))
    table.problem("dirichlet", "makes the classes of workers unlike, but a sample has no one class: leave it out");
  if (run.recipe.schedule.growth.factor > 1)
    table.problem("partition", "= \"fixed\" is for batches of one size: leave out [schedule.growth]");
}

// Networks that carry their state from step to step need samples that continue each other.
void check_carries(const PreparedRun& run, Problems& problems) {
  const auto phases = run.model->training(1);
  const bool carries =
      std::any_of(phases.begin(), phases.end(), [](const auto& p) { return !p.graph.carries().empty(); });
  if (!carries || run.train->info().streams > 0) return;
  OptionReader table(run.recipe.data, problems);
  table.problem("kind",
                fmt::format("must give samples that continue each other, because {} carries its state from step "
                            "to step; set windows = \"streams\" and streams = {}",
                            run.recipe.model_name, run.recipe.train.batch));
}

void check_targets(const PreparedRun& run, OptionReader& train) {
  const models::Task task = run.model->task();
  if (!run.recipe.train.target_accuracy || task == models::Task::classify || task == models::Task::language ||
      task == models::Task::multi_label)
    return;
  train.problem("target_accuracy",
                fmt::format("has no meaning for the task {}; use target_loss", models::name_of(task)));
}

constexpr double most_total_steps = 1e12;
constexpr double endless = 1e15;  // more steps than any run has; small enough to be counted

// The number of steps before `epochs` epochs are over; parts of an epoch count in proportion.
double steps_before(const data::BatchSequence& sequence, double epochs) {
  epochs = std::min(epochs, 1e9);
  if (epochs * static_cast<double>(sequence.steps_before(1)) > endless) return endless;
  const double whole = std::floor(epochs);
  const auto first = static_cast<double>(sequence.steps_before(static_cast<std::uint32_t>(whole)));
  if (whole == epochs) return first;
  return first +
         (epochs - whole) * (static_cast<double>(sequence.steps_before(static_cast<std::uint32_t>(whole) + 1)) - first);
}

}  // namespace

models::InputSpec input_spec(const data::DatasetInfo& info) {
  const auto field = [&](std::size_t i) -> models::InputSpec::Field {
    if (i >= info.fields.size()) return {};
    return {info.fields[i].name, {info.fields[i].dtype, info.fields[i].shape}, info.fields[i].categories};
  };
  models::InputSpec spec{.inputs = {}, .target = field(info.inputs), .classes = info.classes};
  for (std::size_t i = 0; i < info.inputs; ++i) spec.inputs.push_back(field(i));
  return spec;
}

data::BatchSequence PreparedRun::batch_sequence() const {
  return data::BatchSequence(train->size(), batches, recipe.train.drop_partial);
}

data::LoaderOptions PreparedRun::loader_options() const {
  data::LoaderOptions options;
  options.seed = recipe.train.seed;
  options.batches = batches;
  options.drop_partial = recipe.train.drop_partial;
  options.shards = static_cast<std::uint64_t>(recipe.train.shards);
  options.partition = partition;
  return options;
}

std::int64_t PreparedRun::steps_of(const TrainSpec& train) const {
  return train.steps > 0 ? train.steps : steps_in({static_cast<double>(train.epochs), true});
}

Schedule PreparedRun::schedule(std::int64_t total_steps) const {
  const data::BatchSequence sequence = batch_sequence();
  return Schedule(recipe.schedule, recipe.lr, total_steps,
                  [&](double epochs) { return steps_before(sequence, epochs); });
}

std::int64_t PreparedRun::steps_in(const Duration& duration) const {
  if (duration.amount <= 0) return 0;
  const double steps = duration.epochs ? steps_before(batch_sequence(), duration.amount) : duration.amount;
  return std::max<std::int64_t>(1, std::llround(std::min(steps, endless)));
}

namespace {

// What batch norm sees is one shard of the batch: with few samples its means are noisy.
void note_on_batch_norm(PreparedRun& run) {
  constexpr std::int64_t enough = 16;
  const TrainSpec& train = run.recipe.train;
  const std::int64_t samples = train.batch / std::max<std::int64_t>(1, train.shards);
  if (samples >= enough) return;
  const Graph graph = run.model->evaluation(1);
  const auto norm = [](const Parameter& p) { return p.name.ends_with("running_mean"); };
  if (std::ranges::any_of(graph.parameters(), norm))
    run.recipe.notes.push_back(
        fmt::format("batch norm sees the {} samples of one shard, few to take means of: a larger train.batch, fewer "
                    "train.shards or group_norm make it less noisy",
                    samples));
}

enum class Purpose { run_here, describe, plan_elsewhere };

PreparedRun prepare(const OpenPlain& open_plain, Recipe recipe, Purpose purpose, Problems& problems,
                    const data::DataPlaces& places) {
  PreparedRun run;
  run.recipe = std::move(recipe);
  run.described = purpose == Purpose::describe;
  if (run.recipe.tree.items.contains("data")) open_data(open_plain, run, problems, places);
  make_model(run, problems);
  if (!run.train) return run;
  OptionReader train = OptionReader(run.recipe.tree, problems).table("train");
  check_batch(run, train);
  check_partition(run, problems);
  if (run.model) check_targets(run, train);
  if (run.model) choose_metrics(run, train, problems);
  if (run.model) check_carries(run, problems);
  if (!problems.empty()) return run;
  if (run.train->info().streams == 0 && !run.partition.fixed) run.train = data::shuffled(run.train);
  for (const BatchStage& stage :
       batch_stages(run.recipe.schedule.growth, run.recipe.train.batch, static_cast<std::int64_t>(run.train->size())))
    run.batches.push_back({static_cast<std::uint64_t>(stage.step), static_cast<std::uint64_t>(stage.batch)});
  const TrainSpec& spec = run.recipe.train;
  run.total_steps = run.steps_of(spec);
  if (static_cast<double>(run.total_steps) > most_total_steps)
    train.problem("epochs", fmt::format("= {} makes more than {} steps with these data; make it smaller", spec.epochs,
                                        human_count(most_total_steps)));
  if (run.model && problems.empty() && purpose != Purpose::plan_elsewhere) check_memory(run, train, problems);
  if (run.model && problems.empty() && purpose == Purpose::run_here) note_on_batch_norm(run);
  return run;
}

}  // namespace

PreparedRun prepare_run(Disk& disk, Recipe recipe, Problems& problems, const data::DataPlaces& places) {
  return prepare([&](const data::DataSpec& spec, const std::string& split) { return spec.open_plain(disk, split); },
                 std::move(recipe), Purpose::run_here, problems, places);
}

PreparedRun prepare_for_elsewhere(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                                  Problems& problems) {
  return prepare([&](const data::DataSpec& spec, const std::string& split) { return spec.open_plain(disk, split); },
                 read_recipe(path, load_options(disk, path, overrides, problems), problems), Purpose::plan_elsewhere,
                 problems, data::usual_places());
}

PreparedRun prepare_described_run(Disk& disk, const std::string& path, const data::DatasetInfo& plain,
                                  Problems& problems) {
  return prepare([&](const data::DataSpec&, const std::string&) { return data::described_samples(plain); },
                 read_recipe(path, load_options(disk, path, {}, problems), problems), Purpose::describe, problems,
                 data::usual_places());
}

PreparedRun prepare_run(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                        Problems& problems, const data::DataPlaces& places, const std::string& system) {
  return prepare_run(disk, read_recipe(path, load_options(disk, path, overrides, problems, system), problems), problems,
                     places);
}

}  // namespace echelon
