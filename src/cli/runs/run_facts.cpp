#include "cli/runs/run_facts.h"

#include <fmt/chrono.h>

#include "base/error.h"
#include "cli/answers/metric_text.h"
#include "recipe/toml.h"
#include "world/os/folder_disk.h"
#include "world/os/folder_lock.h"

namespace echelon::cli {

namespace {

Options recipe_of(Disk& disk, const RunFolder& folder) try {
  return parse_toml(read_text(disk, folder.recipe(), TomlLimits{}.bytes), folder.recipe());
} catch (const Error&) {
  return {};
}

std::string model_of(const Options& recipe) {
  const auto model = recipe.items.find("model");
  const auto* table = model == recipe.items.end() ? nullptr : std::get_if<Option::Table>(&model->second.value);
  if (!table) return "-";
  const auto name = (*table)->items.find("name");
  const auto* text = name == (*table)->items.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  return text ? *text : "layers";
}

// Somebody trains in it; or it has ended and nothing came after; or it neither goes on nor has ended.
std::string state_of(const RunInfo& run) {
  if (is_folder_locked(run.folder.path)) return "running";
  if (!run.summary.is_object()) return "crashed";
  if (run.last && run.last->step > run.summary.value("steps", run.last->step)) return "crashed";
  return run.summary.value("stopped_by", std::string("?"));
}

// The metric that train.monitor names, without its part; empty if it names none.
std::string monitor_of(const Options& recipe) {
  const auto train = recipe.items.find("train");
  const auto* table = train == recipe.items.end() ? nullptr : std::get_if<Option::Table>(&train->second.value);
  if (!table) return "";
  const auto monitor = (*table)->items.find("monitor");
  const auto* text = monitor == (*table)->items.end() ? nullptr : std::get_if<std::string>(&monitor->second.value);
  if (!text) return "";
  for (const std::string prefix : {"val_", "test_"})
    if (text->starts_with(prefix)) return text->substr(prefix.size());
  return *text;
}

// Of the evaluations, as run/training/training.cpp decides: by the monitored metric, of equals the one with the least
// loss.
std::optional<BestScore> best_of(const std::vector<MetricPoint>& points, const std::string& monitor) {
  const std::optional<Metric> named = metric_named(monitor);
  for (const std::string part : {"val", "test"}) {
    std::optional<BestScore> best;
    double best_loss = 0;
    for (const MetricPoint& p : points) {
      const double* loss = p.find(part + "_loss");
      if (!loss) continue;
      const std::string metric = named ? monitor : p.find(part + "_accuracy") ? "accuracy" : "loss";
      const double* value = p.find(part + "_" + metric);
      if (!value) continue;
      const bool higher = metric_named(metric)->higher_is_better();
      const bool better = !best || (higher ? *value > best->value : *value < best->value) ||
                          (*value == best->value && *loss < best_loss);
      if (better) best = BestScore{part + "_" + metric, *value, p.step}, best_loss = *loss;
    }
    if (best) return best;
  }
  return {};
}

}  // namespace

RunFacts run_facts(const RunFolder& folder) {
  const auto disk = make_folder_disk(folder.path);
  RunFacts facts{.info = read_run(*disk, folder), .recipe = {}, .model = "", .state = "", .best = {}};
  facts.recipe = recipe_of(*disk, folder);
  facts.model = model_of(facts.recipe);
  facts.state = state_of(facts.info);
  facts.best = best_of(read_evaluations(*disk, folder.metrics()), monitor_of(facts.recipe));
  return facts;
}

std::string started_text(const RunFacts& facts) {
  if (!facts.info.first) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(facts.info.first->time)));
}

std::string best_text(const RunFacts& facts) {
  if (!facts.best) return "-";
  return metric_text(facts.best->metric.substr(facts.best->metric.find('_') + 1), facts.best->value);
}

Json to_json(const RunFacts& facts) {
  const RunInfo& run = facts.info;
  Json j{{"run_dir", run.folder.path}, {"name", run.name},       {"model", facts.model},
         {"state", facts.state},       {"summary", run.summary}, {"started", nullptr}};
  if (run.first) j["started"] = run.first->time;
  if (run.last) j["last_step"] = run.last->step;
  if (facts.best)
    j["best"] = {{"metric", facts.best->metric}, {"value", facts.best->value}, {"step", facts.best->step}};
  return j;
}

}  // namespace echelon::cli
