#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "models/network.h"
#include "recipe/prepare_parts.h"
#include "world/os/host.h"

namespace echelon {

namespace {

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

}  // namespace

void choose_metrics(PreparedRun& run, OptionReader& train, Problems& problems) {
  const models::Task task = run.model->task();
  OptionReader table = OptionReader(run.recipe.tree, problems).table("metrics");
  const auto find = [&](OptionReader& where, const std::string& key, const std::string& name) {
    const std::optional<Metric> metric = metric_named(name);
    if (metric && has_meaning(*metric, task)) return metric;
    const auto known = metric_names(task);
    where.problem(key, metric ? fmt::format("names '{}', which has no meaning for the task {}; there are {}", name,
                                            models::name_of(task), fmt::join(known, ", "))
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

}  // namespace echelon
