#include "recipe/prepare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "data/description.h"
#include "data/table/format.h"
#include "models/fine_tuning.h"
#include "models/memory.h"
#include "models/network.h"
#include "models/zoo.h"
#include "world/os/cores.h"
#include "world/os/host.h"

namespace echelon {

namespace {

// The samples of a split before any transform.
using OpenPlain = std::function<data::DatasetPtr(const data::DataSpec& spec, const std::string& split)>;

// A data set, or null and a problem: a file that is missing or broken says so itself.
data::DatasetPtr open_split(PreparedRun& run, const OpenPlain& open_plain, const data::DataSpec& spec,
                            const std::string& split, OptionReader& table, bool optional = false) {
  try {
    const bool train = split == "train";
    data::DatasetPtr plain = open_plain(spec, split);
    if (train) run.plain = plain->info();
    data::DatasetPtr dataset = spec.transformed(std::move(plain), train);
    if (dataset->size() > 0) return dataset;
    table.problem("kind", fmt::format("= \"{}\" has no samples for the split '{}'", spec.kind(), split));
  } catch (const data::NoSplit& e) {
    if (!optional)
      table.problems().add(table.place(table.has("path") ? "path" : "kind"), fmt::format("data: {}", e.what()));
  } catch (const BadInput& e) {
    table.problems().add(table.place(table.has("path") ? "path" : "kind"), fmt::format("data: {}", e.what()));
  } catch (const DiskError& e) {
    table.problems().add(table.place(table.has("path") ? "path" : "kind"), fmt::format("data: {}", e.what()));
  }
  return nullptr;
}

// Binary targets are 0 or 1 (or a probability between them).
void check_zero_or_one(const data::Dataset& dataset, OptionReader& loss) {
  data::Sample sample(dataset.fields());
  const std::size_t target = dataset.fields().size() - 1;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(dataset.size(), 1000); ++i) {
    dataset.get(i, {}, sample.ref());
    for (const float value : sample.field<float>(target))
      if (!(value >= 0 && value <= 1))
        return loss.problem("name",
                            fmt::format("= \"binary\" needs targets that are 0 or 1, but sample {} has {}", i, value));
  }
}

std::string fields_text(const data::DatasetInfo& info) {
  std::string out;
  for (const data::Field& field : info.fields) out += (out.empty() ? "" : ", ") + to_string(field);
  return out;
}

// What the data say about the loss.
models::LossSpec usual_loss(const data::DatasetInfo& info) {
  models::LossSpec loss;
  if (!info.targets.empty() && std::ranges::all_of(info.targets, &data::TargetColumn::binary)) loss.name = "binary";
  return loss;
}

// The [loss] of a recipe for these targets; what needs the training samples is computed from them.
models::LossSpec read_loss_for(const PreparedRun& run, const models::InputSpec& inputs, Problems& problems) {
  OptionReader table(run.recipe.loss, problems);
  models::LossSpec loss = models::read_loss(table);
  const bool classes = inputs.classes > 0;
  if (inputs.target.name.empty())
    problems.add(table.place("name"), "[loss] is for networks that learn from targets, but the data have none");
  if (loss.name.empty()) loss.name = classes ? "cross_entropy" : inputs.loss.name.empty() ? "mse" : inputs.loss.name;
  if (classes != (loss.name == "cross_entropy"))
    table.problem("name", classes ? fmt::format("= \"{}\" is for numbers, but the targets are classes: use "
                                                "cross_entropy",
                                                loss.name)
                                  : "= \"cross_entropy\" is for classes, but the targets are numbers: use mse, mae, "
                                    "huber, quantile, or binary for targets that are 0 or 1");
  if (!loss.class_weights.empty() && std::ssize(loss.class_weights) != inputs.classes)
    table.problem("class_weights",
                  fmt::format("has {} numbers, but there are {} classes", loss.class_weights.size(), inputs.classes));
  if (!run.train || run.described) return loss;
  if (loss.balanced && !data::has_labels(run.train->info())) {
    table.problem("class_weights", "= \"balanced\" counts the samples of each class, but a sample has no one class");
  } else if (loss.balanced) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(inputs.classes));
    for (std::uint64_t i = 0; i < run.train->size(); ++i) {
      const std::int32_t label = run.train->label(i);
      if (label >= 0 && label < inputs.classes) ++counts[static_cast<std::size_t>(label)];
    }
    loss.class_weights = models::balanced_weights(counts);
  }
  if (loss.name == "binary" && inputs.target.type.dtype == DType::f32) check_zero_or_one(*run.train, table);
  return loss;
}

void open_data(const OpenPlain& open_plain, PreparedRun& run, Problems& problems, const data::DataPlaces& places) {
  OptionReader table(run.recipe.data, problems);
  const std::size_t before = problems.list().size();
  const data::DataSpec spec = read_data_spec(table, places);
  if (problems.list().size() > before) return;
  run.train = open_split(run, open_plain, spec, "train", table);
  run.partition = spec.partition();
  if (run.recipe.train.evaluate) {
    if (spec.has_validation()) run.validation = open_split(run, open_plain, spec, "validation", table);
    run.test = open_split(run, open_plain, spec, "test", table, spec.has_validation());
  }
  for (const auto& part : {run.train, run.validation, run.test})
    if (part) run.recipe.notes.insert(run.recipe.notes.end(), part->info().notes.begin(), part->info().notes.end());
  if (!run.train) return;
  if (const data::DatasetInfo& info = run.train->info(); info.classes == 1 && data::has_labels(info))
    table.problem(table.has("path") ? "path" : "kind",
                  fmt::format("has samples of one class only{}: there is nothing to tell apart; add samples of another",
                              info.class_names.empty() ? "" : fmt::format(" ('{}')", info.class_names[0])));
  // They go into messages, JSON and the page, which are UTF-8.
  const std::vector<std::string>& names = run.train->info().class_names;
  if (const auto bad = std::ranges::find_if_not(names, data::is_utf8); bad != names.end())
    table.problem("kind",
                  fmt::format("has a class whose name is not UTF-8 text ({:?}): write the labels, or the names of the "
                              "folders, in UTF-8",
                              *bad));
  for (const auto& [part, verb] : {std::pair(run.validation, "validate"), std::pair(run.test, "test")}) {
    if (!part) continue;
    const data::DatasetInfo &train = run.train->info(), &other = part->info();
    if (train.fields != other.fields)
      table.problem("kind", fmt::format("has other samples to {} with ({}) than to train with ({})", verb,
                                        fields_text(other), fields_text(train)));
    if (other.classes > train.classes)
      table.problem("kind",
                    fmt::format("has {} classes to {} with, but {} to train with", other.classes, verb, train.classes));
  }
}

void make_model(PreparedRun& run, Problems& problems) {
  const Recipe& recipe = run.recipe;
  if (recipe.model_name.empty()) return;
  OptionReader table(recipe.model, problems);
  models::InputSpec inputs;
  if (run.train) {
    inputs = input_spec(run.train->info());
  } else {
    // Without data, the settings can still be checked on what the network is usually trained on. A network that is
    // written out has no usual data.
    const auto zoo = models::zoo();
    const auto entry = std::find_if(zoo.begin(), zoo.end(), [&](const auto& e) { return e.name == recipe.model_name; });
    if (entry != zoo.end() && recipe.model_name == "layers") return;
    if (entry != zoo.end()) inputs = entry->usual_inputs();
  }
  if (run.train) inputs.loss = usual_loss(run.train->info());
  if (recipe.tree.items.contains("loss")) inputs.loss = read_loss_for(run, inputs, problems);
  auto model = models::make_model(recipe.model_name, table, inputs);
  if (model && !recipe.rates.empty()) {
    OptionReader rates = OptionReader(recipe.optim, problems).table("rates");
    for (const auto& [pattern, factor] : recipe.rates) models::check_patterns({pattern}, *model, pattern, rates);
    model = models::with_rates(std::move(model), recipe.rates);
  }
  if (const auto patterns = OptionReader(recipe.model, problems).texts("freeze", {}); model && !patterns.empty())
    for (const std::string& sentence : models::frozen_in_words(patterns, *model)) run.recipe.notes.push_back(sentence);
  if (run.train) run.model = std::move(model);
}

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

// The area under the ROC curve needs the scores of all samples at once.
void check_scores_fit(const PreparedRun& run, Problems& problems) {
  if (std::ranges::find(run.metrics, Metric::Kind::auc, &Metric::kind) == run.metrics.end()) return;
  double samples = 0;
  for (const auto& part : {run.validation, run.test})
    if (part) samples = std::max(samples, static_cast<double>(part->size()));
  const double bytes = samples * static_cast<double>(models::outputs_of(run.model->inputs()) + 1) * sizeof(double);
  if (bytes <= 0.25 * static_cast<double>(usable_memory_bytes())) return;
  OptionReader table = OptionReader(run.recipe.tree, problems).table("metrics");
  table.problem("report", fmt::format("names 'auc', which keeps the scores of all samples: {}; leave it out",
                                      human_bytes(bytes)));
}

// The metrics that the recipe names, and the one that decides what is best.
void choose_metrics(PreparedRun& run, OptionReader& train, Problems& problems) {
  const models::Task task = run.model->task();
  OptionReader table = OptionReader(run.recipe.tree, problems).table("metrics");
  const auto find = [&](OptionReader& where, const std::string& key, const std::string& name) {
    const std::optional<Metric> metric = metric_named(name);
    if (metric && has_meaning(*metric, task)) return metric;
    const auto known = metric_names(task);
    where.problem(key, metric
                           ? fmt::format("names '{}', which has no meaning for a model that learns to {}; there are {}",
                                         name, models::name_of(task), fmt::join(known, ", "))
                           : fmt::format("names '{}', but there is no such metric{}; there are {}", name,
                                         did_you_mean(name, known), fmt::join(known, ", ")));
    return std::optional<Metric>();
  };
  const auto add = [&](const Metric& metric) {
    if (metric.kind != Metric::Kind::loss &&
        std::ranges::find(run.metrics, metric.name, &Metric::name) == run.metrics.end())
      run.metrics.push_back(metric);
  };
  if (!run.recipe.report) run.metrics = usual_metrics(task);
  // Targets have units of their own, which no mean over them has.
  if (!run.recipe.report && task == models::Task::regress && run.train->info().targets.size() > 1) {
    run.metrics.clear();
    for (const char* each : {"mae_per_target", "rmse_per_target", "r2_per_target", "r2"})
      run.metrics.push_back(*metric_named(each));
  }
  for (const std::string& name : run.recipe.report.value_or(std::vector<std::string>()))
    if (const auto metric = find(table, "report", name)) add(*metric);
  std::string name = run.recipe.train.monitor;
  if (name.empty() || !run.evaluated()) return check_scores_fit(run, problems);
  for (const auto& [prefix, there] : {std::pair<std::string, bool>("val_", run.validation != nullptr),
                                      std::pair<std::string, bool>("test_", run.validation == nullptr)}) {
    if (!name.starts_with(prefix)) continue;
    if (!there)
      train.problem("monitor", prefix == "val_"
                                   ? fmt::format("= \"{}\", but there is no validation part: keep one back with "
                                                 "data.validation = 0.1, or monitor test_{}",
                                                 name, name.substr(prefix.size()))
                                   : fmt::format("= \"{}\", but the test part is only looked at when all is done; "
                                                 "monitor val_{}",
                                                 name, name.substr(prefix.size())));
    name = name.substr(prefix.size());
    break;
  }
  run.monitor = find(train, "monitor", name);
  if (run.monitor && run.monitor->over == Metric::Over::each) {
    train.problem("monitor", fmt::format("= \"{}\" is several numbers; name one, such as f1", name));
    run.monitor.reset();
  }
  if (run.monitor) add(*run.monitor);
  check_scores_fit(run, problems);
}

void check_targets(const PreparedRun& run, OptionReader& train) {
  const models::Task task = run.model->task();
  if (!run.recipe.train.target_accuracy || task == models::Task::classify || task == models::Task::language ||
      task == models::Task::multi_label)
    return;
  train.problem("target_accuracy",
                fmt::format("has no meaning for a model that learns to {}; use target_loss", models::name_of(task)));
}

constexpr double most_total_steps = 1e12;
constexpr double endless = 1e15;  // more steps than any run has; small enough to be counted

std::string memory_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Whether a step fits into this machine's memory, before anything is allocated. What no number of workers or cores
// would make fit is a problem; what may not fit on this machine alone is a note.
void check_memory(PreparedRun& run, OptionReader& train, Problems& problems) {
  const Recipe& recipe = run.recipe;
  std::uint64_t batch = 0;
  for (const data::BatchPhase& phase : run.batches) batch = std::max(batch, phase.batch);
  batch = std::min<std::uint64_t>(batch, run.train->size());
  const std::int64_t shards = recipe.train.shards;
  const auto slice =
      static_cast<std::int64_t>((batch + static_cast<std::uint64_t>(shards) - 1) / static_cast<std::uint64_t>(shards));
  // Exact training always computes slices of a shard. Systems split each shard's samples between workers, and how many
  // workers there will be is not known here: one sample at least.
  const bool exact = recipe.rule.items.empty() && recipe.exchange.items.empty() && recipe.sync.items.empty();
  const std::size_t available = usable_memory_bytes();
  models::StepMemory one, whole;
  try {
    one = models::step_memory(*run.model, exact ? slice : 1, available);
    whole = exact || one.least() > available ? one : models::step_memory(*run.model, slice, available);
  } catch (const TooLarge& e) {
    train.problem("batch", fmt::format("= {} cannot be computed: {}", recipe.train.batch, e.what()));
    return;
  }
  if (2 * one.parameters > available) {
    problems.add(recipe.model.place,
                 fmt::format("model {} needs {} of memory for its weights and their gradients, and this machine has "
                             "{}: make the model smaller",
                             recipe.model_name, memory_text(2 * one.parameters), memory_text(available)));
    return;
  }
  if (one.least() > available) {
    train.problem("batch", fmt::format("= {}: a training step needs {} of memory, and this machine has {}: make {}"
                                       "train.batch or the model smaller",
                                       recipe.train.batch, memory_text(one.least()), memory_text(available),
                                       slice > 1 ? "train.shards larger, or " : ""));
    return;
  }
  const auto cores = static_cast<std::size_t>(std::min<std::int64_t>(available_cores(), shards));
  const std::size_t slots = make_optim(recipe).rule->slots().size();
  double sample = 0;
  for (const data::Field& field : run.train->fields()) sample += static_cast<double>(field.bytes());
  const double all = static_cast<double>(whole.parameters) * static_cast<double>(1 + slots + cores) +
                     static_cast<double>(whole.arena) * static_cast<double>(cores) +
                     sample * static_cast<double>(batch);
  if (all > static_cast<double>(available))
    run.recipe.notes.push_back(fmt::format(
        "training takes about {} of memory with one worker on {} core{}, and this machine has {}: it may not fit",
        human_bytes(all), cores, cores == 1 ? "" : "s", memory_text(available)));
}

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

PreparedRun prepare(const OpenPlain& open_plain, Recipe recipe, bool described, Problems& problems,
                    const data::DataPlaces& places) {
  PreparedRun run;
  run.recipe = std::move(recipe);
  run.described = described;
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
  if (run.model && problems.empty()) check_memory(run, train, problems);
  return run;
}

}  // namespace

PreparedRun prepare_run(Disk& disk, Recipe recipe, Problems& problems, const data::DataPlaces& places) {
  return prepare([&](const data::DataSpec& spec, const std::string& split) { return spec.open_plain(disk, split); },
                 std::move(recipe), false, problems, places);
}

PreparedRun prepare_described_run(Disk& disk, const std::string& path, const data::DatasetInfo& plain,
                                  Problems& problems) {
  return prepare([&](const data::DataSpec&, const std::string&) { return data::described_samples(plain); },
                 read_recipe(path, load_options(disk, path, {}, problems), problems), true, problems,
                 data::usual_places());
}

PreparedRun prepare_run(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                        Problems& problems, const data::DataPlaces& places, const std::string& system) {
  return prepare_run(disk, read_recipe(path, load_options(disk, path, overrides, problems, system), problems), problems,
                     places);
}

}  // namespace echelon
