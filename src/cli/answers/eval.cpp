// `echelon eval`: how good a trained network is, on its test data or on other data of the same kind.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/answers/column_values.h"
#include "cli/answers/eval_errors.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/metric_text.h"
#include "cli/answers/other_samples.h"
#include "cli/folded.h"
#include "cli/runs/run_facts.h"
#include "cli/verbs.h"
#include "parallel/step/evaluator.h"

namespace echelon::cli {

namespace {

struct EvalSettings {
  std::string run, checkpoint = "best", split = "test";
  int cores = available_cores();
  bool json = false, errors = false, ema = false;
  int worst = 10;
  std::string by, data;
};

// Minus the log of the probability that softmax gives the right class, and its greatest probability.
void judge_classes(std::span<const float> logits, JudgedSample& s) {
  const auto top = std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l - *top));
  s.said = top - logits.begin();
  s.right = s.said == s.is;
  s.confidence = 1 / sum;
  s.loss = std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(s.is)] - *top);
}

// The squared error, summed over the targets, and the target that is furthest off.
void judge_numbers(std::span<const float> output, std::span<const float> target,
                   const std::vector<data::TargetColumn>& columns, JudgedSample& s) {
  double most = -1;
  const auto original = [&](std::size_t i, float x) {
    const auto value = static_cast<double>(x);
    return i < columns.size() ? columns[i].mean + columns[i].deviation * value : value;
  };
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double off = static_cast<double>(output[i]) - static_cast<double>(target[i]);
    s.loss += off * off;
    s.off.push_back(std::abs(original(i, output[i]) - original(i, target[i])));
    if (std::abs(off) > most)
      most = std::abs(off), s.target = original(i, target[i]), s.output = original(i, output[i]), s.furthest = i;
  }
}

// Labels that hold or do not, each by itself: the loss is the sum of minus the log of what the truth was given.
void judge_labels(std::span<const float> logits, std::span<const float> target, JudgedSample& s) {
  s.right = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto x = static_cast<double>(logits[i]), is = static_cast<double>(target[i]);
    s.loss += std::max(x, 0.0) - x * is + std::log1p(std::exp(-std::abs(x)));
    s.holds.push_back(is > 0.5), s.claimed.push_back(x > 0);
    s.right = s.right && s.holds.back() == s.claimed.back();
  }
}

// How the samples are told apart for --by: by the values of a column of their table.
ErrorReport::Grouping grouping(Disk& disk, const LoadedRun& run, const data::Dataset& data, const std::string& column) {
  if (column.empty()) return {};
  const auto& file = data.info().table_file;
  if (!file) bad_input("--by {}: {} was not trained on a table", column, run.folder.path);
  return {column, [value = value_texts(disk, *file, column), &data](std::uint64_t index) {
            return value(data.origin(index, {}));
          }};
}

// Gives every sample of the evaluation to the report.
Evaluator::Look looking(const LoadedRun& run, const data::Dataset& data, ErrorReport& report) {
  const bool classes = run.prepared.model->task() == models::Task::classify;
  const bool labels = run.prepared.model->task() == models::Task::multi_label;
  const std::vector<float>& levels = run.prepared.model->inputs().loss.quantiles;
  const std::size_t each = std::max<std::size_t>(1, levels.size()), middle = models::middle_quantile(levels);
  return [&, classes, labels, each, middle](const data::Batch& batch, int shard, Executor& executor) {
    const auto s = static_cast<std::uint64_t>(shard);
    const data::IndexRange samples = batch.samples_of(s);
    const auto bytes = executor.output(classes || labels ? "logits" : "output");
    const auto numbers = std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    const std::size_t width = numbers.size() / samples.count, target = data.info().inputs;
    for (std::size_t i = 0; i < samples.count; ++i) {
      JudgedSample one{.index = samples.first + i};
      if (classes) {
        one.is = batch.field_as<std::int32_t>(s, target)[i];
        judge_classes(numbers.subspan(i * width, width), one);
      } else if (labels) {
        judge_labels(numbers.subspan(i * width, width), batch.field_as<float>(s, target).subspan(i * width, width),
                     one);
      } else {
        std::vector<float> said;  // of several quantiles the one nearest to one half
        for (std::size_t t = middle; t < width; t += each) said.push_back(numbers[i * width + t]);
        judge_numbers(said, batch.field_as<float>(s, target).subspan(i * said.size(), said.size()), data.info().targets,
                      one);
      }
      report.add(one);
    }
  };
}

// Of labels and numbers: the columns that are predicted.
std::vector<std::string> target_names_of(const LoadedRun& run) {
  std::vector<std::string> names;
  for (const data::TargetColumn& t : run.prepared.train->info().targets) names.push_back(t.name);
  const auto& target = run.prepared.model->inputs().target.type;
  for (auto i = std::ssize(names); i < target.elements(); ++i) names.push_back(fmt::format("output_{}", i));
  return names;
}

void expect_errors(const LoadedRun& run, const EvalSettings& s) {
  const models::Task task = run.prepared.model->task();
  if (s.errors && task != models::Task::classify && task != models::Task::regress && task != models::Task::multi_label)
    bad_input("--errors is for networks that classify, label or predict numbers; the task of {} is {}", run.folder.path,
              models::name_of(task));
  if (!s.data.empty() && s.split != "test")
    bad_input("--split {} is a part of the run's own data, and --data names others: leave one out", s.split);
  if (!s.by.empty() && !s.errors) bad_input("--by {} belongs to --errors", s.by);
}

// Whether the file or folder that a run was trained on is here, or none was named.
bool has_its_data(const Options& recipe) {
  const auto data = recipe.items.find("data");
  const auto* table = data == recipe.items.end() ? nullptr : std::get_if<Option::Table>(&data->second.value);
  if (!table) return true;
  const auto path = (*table)->items.find("path");
  const auto* text = path == (*table)->items.end() ? nullptr : std::get_if<std::string>(&path->second.value);
  return !text || make_real_disk()->exists(*text);
}

// The run, with its own data unless others are named. Where its own are gone, others are the cure.
LoadedRun load_for(Disk& disk, const EvalSettings& s) {
  if (!s.data.empty()) return load_run(disk, s.run, s.checkpoint, s.ema, RunData::described);
  try {
    return load_run(disk, s.run, s.checkpoint, s.ema);
  } catch (const BadInput& problem) {
    const RunFolder folder = open_run(disk, "runs", s.run);
    if (has_its_data(run_facts(folder).recipe)) throw;
    bad_input("{}\nOther samples judge it as well: echelon eval {} --data FILE", problem.what(),
              shell_quoted(folder.path));
  }
}

void eval(const EvalSettings& s) {
  const auto disk = make_real_disk();
  const bool other = !s.data.empty();
  LoadedRun run = load_for(*disk, s);
  expect_errors(run, s);
  const auto data =
      other ? open_other_samples(*disk, run, s.data) : data::open_dataset(*disk, run.prepared.recipe.data, s.split);
  if (other)
    for (const std::string& note : data->info().notes) fmt::print(stderr, "note: {}\n", note);
  LocalTeam alone(s.cores);
  Evaluator evaluator(*run.prepared.model, run.table, run.parameters.as<float>(), data,
                      static_cast<std::int64_t>(std::min(data->size(), evaluation_batch)), alone.team,
                      run.prepared.metrics);
  ErrorReport::Meaning meaning;
  const models::Task task = run.prepared.model->task();
  if (task == models::Task::classify) meaning.classes = class_names_of(data->info());
  if (task == models::Task::multi_label) meaning.labels = target_names_of(run);
  if (task == models::Task::regress) meaning.numbers = target_names_of(run);
  if (const auto file = data->info().table_file)  // rows may have been left out, or put in another order
    meaning.row = [&data, file](std::uint64_t index) { return file->table.row_numbers[data->origin(index, {})]; };
  if (const auto files = data->info().files)
    meaning.file = [&data, files](std::uint64_t index) { return (*files)[data->origin(index, {})]; };
  ErrorReport report(std::move(meaning), static_cast<std::size_t>(s.worst), grouping(*disk, run, *data, s.by));
  const Evaluation e = evaluator.run(s.errors ? looking(run, *data, report) : Evaluator::Look{});
  if (!std::isfinite(e.loss))
    bad_input("{}: the loss is no number ({}): a sample has values too large for this network",
              other ? s.data : "the " + s.split + " part", e.loss);
  if (s.json) {
    nlohmann::ordered_json j{
        {"run_dir", run.folder.path}, {"step", run.manifest.position.step}, {"split", s.split}, {"samples", e.samples}};
    if (other) j.erase("split"), j["data"] = s.data;
    j["checkpoint"] = run.which;
    for (const auto& [name, value] : named_values(e, "")) j[name] = value;
    j["weights_sha256"] = run.manifest.weights_sha256;
    if (s.errors) j["errors"] = report.to_json();
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{}: {}\n", run.folder.path, run.which);
  fmt::print("{}\n", other ? fmt::format("{} samples of {}", e.samples, s.data)
                           : fmt::format("{} {} samples", e.samples, s.split));
  const MetricValues values = named_values(e, "");
  std::size_t width = 10;
  for (const auto& [name, value] : values) width = std::max(width, name.size());
  for (const auto& [name, value] : values)
    fmt::print("{:<{}}  {}\n", name, width, metric_text(name, value).substr(name.size() + 1));
  fmt::print("{}", for_terminal(1, fmt::format("{:<{}}  sha256 {}\n", "weights", width, run.manifest.weights_sha256),
                                static_cast<int>(width) + 2));
  if (s.errors) fmt::print("{}", report.text());
}

}  // namespace

void add_eval(Verb program) {
  const Verb verb = program.add_subcommand("eval", "Loss and accuracy of a trained network");
  auto s = std::make_shared<EvalSettings>();
  verb.add_option("run", s->run, "A run's folder, its name in runs/, or a registered MODEL@VERSION").required();
  verb.add_option("--checkpoint", s->checkpoint,
                  "best (by train.monitor, and of equals the lowest loss), last or a step")
      .show_default();
  verb.add_option("--split", s->split, "test, validation or train")
      .show_default()
      .one_of({"test", "validation", "train"});
  verb.add_option(
      "--data", s->data,
      "Other samples with what is right: a file or folder of the kind that it was trained on, or a known set");
  verb.add_option("--cores", s->cores, "Cores to use").show_default().range(1, 1024);
  verb.add_flag("--errors", s->errors, "Also show how each class fares and the worst mistakes");
  verb.add_option("--worst", s->worst, "How many mistakes --errors shows").show_default().range(1, 100000);
  verb.add_option("--by", s->by, "With --errors: also for every value of this column of the table");
  verb.add_flag("--ema", s->ema, "Use the average of the weights that optim.ema kept");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon eval runs/demo-1\n  echelon eval demo-1 --checkpoint last --split train\n"
      "  echelon eval demo-1 --errors\n  echelon eval houses-1 --errors --by city\n"
      "  echelon eval houses-1 --data sold-this-week.csv");
  verb.action([s] { eval(*s); });
}

}  // namespace echelon::cli
