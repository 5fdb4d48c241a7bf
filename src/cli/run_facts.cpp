#include "cli/run_facts.h"

#include <fmt/chrono.h>

#include "base/error.h"
#include "recipe/toml.h"
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

// Of the evaluations: the greatest accuracy, and where there is none the least loss; of equals the one with less loss.
std::optional<BestScore> best_of(const std::vector<MetricPoint>& points) {
  for (const std::string part : {"val", "test"}) {
    std::optional<BestScore> best;
    double best_loss = 0;
    for (const MetricPoint& p : points) {
      const double *loss = p.find(part + "_loss"), *accuracy = p.find(part + "_accuracy");
      if (!loss) continue;
      const BestScore score{part + (accuracy ? "_accuracy" : "_loss"), accuracy ? *accuracy : *loss, p.step};
      const bool better =
          !best || (accuracy ? score.value > best->value || (score.value == best->value && *loss < best_loss)
                             : score.value < best->value);
      if (better) best = score, best_loss = *loss;
    }
    if (best) return best;
  }
  return {};
}

}  // namespace

RunFacts run_facts(Disk& disk, RunInfo info) {
  RunFacts facts{.info = std::move(info), .recipe = {}, .model = "", .state = "", .best = {}};
  facts.recipe = recipe_of(disk, facts.info.folder);
  facts.model = model_of(facts.recipe);
  facts.state = state_of(facts.info);
  facts.best = best_of(read_metrics(disk, facts.info.folder.metrics()).points);
  return facts;
}

std::string started_text(const RunFacts& facts) {
  if (!facts.info.first) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(facts.info.first->time)));
}

std::string best_text(const RunFacts& facts) {
  if (!facts.best) return "-";
  const bool accuracy = facts.best->metric.ends_with("accuracy");
  return accuracy ? fmt::format("accuracy {:.2f} %", 100 * facts.best->value)
                  : fmt::format("loss {:.4f}", facts.best->value);
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
