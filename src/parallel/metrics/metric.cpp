#include "parallel/metrics/metric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace echelon {

namespace {

struct KindRow {
  std::string_view name;
  Metric::Kind kind;
  bool higher_is_better;
  std::vector<models::Task> tasks;
  bool by_class = false;   // has _micro and _per_class
  bool by_target = false;  // has _per_target
};

const std::vector<KindRow>& kinds() {
  static const std::vector<KindRow> rows{
      {"loss",
       Metric::Kind::loss,
       false,
       {models::Task::classify, models::Task::regress, models::Task::language, models::Task::reconstruct,
        models::Task::generate, models::Task::multi_label}},
      {"accuracy",
       Metric::Kind::accuracy,
       true,
       {models::Task::classify, models::Task::language, models::Task::multi_label}},
      {"top", Metric::Kind::top_k, true, {models::Task::classify, models::Task::language}},
      {"precision", Metric::Kind::precision, true, {models::Task::classify, models::Task::multi_label}, true},
      {"recall", Metric::Kind::recall, true, {models::Task::classify, models::Task::multi_label}, true},
      {"f1", Metric::Kind::f1, true, {models::Task::classify, models::Task::multi_label}, true},
      {"auc", Metric::Kind::auc, true, {models::Task::classify, models::Task::multi_label}},
      {"log_loss",
       Metric::Kind::log_loss,
       false,
       {models::Task::classify, models::Task::language, models::Task::multi_label}},
      {"perplexity", Metric::Kind::perplexity, false, {models::Task::classify, models::Task::language}},
      {"mae", Metric::Kind::mae, false, {models::Task::regress}, false, true},
      {"rmse", Metric::Kind::rmse, false, {models::Task::regress}, false, true},
      {"r2", Metric::Kind::r2, true, {models::Task::regress}, false, true},
  };
  return rows;
}

const KindRow& row_of(Metric::Kind kind) { return *std::ranges::find(kinds(), kind, &KindRow::kind); }

Metric plain(Metric::Kind kind) { return {std::string(row_of(kind).name), kind, Metric::Over::all, 0}; }

}  // namespace

bool Metric::higher_is_better() const { return row_of(kind).higher_is_better; }

std::optional<Metric> metric_named(const std::string& name) {
  if (name.starts_with("top_")) {
    Metric metric{name, Metric::Kind::top_k};
    const char *from = name.data() + 4, *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(from, end, metric.k);
    return error == std::errc() && stop == end && *from != '0' && metric.k > 0 ? std::optional(metric) : std::nullopt;
  }
  for (const KindRow& row : kinds()) {
    if (row.kind == Metric::Kind::top_k || !name.starts_with(row.name)) continue;
    Metric metric{name, row.kind};
    const std::string rest = name.substr(row.name.size());
    if (rest.empty()) return metric;
    metric.over = Metric::Over::micro;
    if (row.by_class && rest == "_micro") return metric;
    metric.over = Metric::Over::each;
    if ((row.by_class && rest == "_per_class") || (row.by_target && rest == "_per_target")) return metric;
  }
  return std::nullopt;
}

bool has_meaning(const Metric& metric, models::Task task) {
  return std::ranges::find(row_of(metric.kind).tasks, task) != row_of(metric.kind).tasks.end();
}

std::vector<Metric> usual_metrics(models::Task task) {
  switch (task) {
    case models::Task::classify: return {plain(Metric::Kind::accuracy)};
    case models::Task::language: return {plain(Metric::Kind::accuracy), plain(Metric::Kind::perplexity)};
    case models::Task::multi_label: return {plain(Metric::Kind::accuracy), plain(Metric::Kind::f1)};
    case models::Task::regress: return {plain(Metric::Kind::mae), plain(Metric::Kind::rmse), plain(Metric::Kind::r2)};
    case models::Task::reconstruct:
    case models::Task::generate: return {};
  }
  return {};
}

std::vector<std::string> metric_names(models::Task task) {
  std::vector<std::string> names;
  for (const KindRow& row : kinds()) {
    if (std::ranges::find(row.tasks, task) == row.tasks.end()) continue;
    const std::string name(row.name);
    names.push_back(row.kind == Metric::Kind::top_k ? "top_5" : name);
    if (row.by_class) names.insert(names.end(), {name + "_micro", name + "_per_class"});
    if (row.by_target) names.push_back(name + "_per_target");
  }
  return names;
}

}  // namespace echelon
