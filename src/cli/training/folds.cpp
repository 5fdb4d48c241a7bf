#include "cli/training/folds.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/answers/metric_text.h"
#include "run/job.h"
#include "run/training/interrupted.h"
#include "track/run.h"
#include "world/os/command.h"
#include "world/os/host.h"
#include "world/os/signals.h"

namespace echelon::cli {

namespace {

std::vector<std::string> overrides_of(const TrainSettings& s, std::int64_t folds, std::int64_t fold) {
  std::vector<std::string> all = s.overrides;
  all.push_back(fmt::format("data.folds={}", folds));
  all.push_back(fmt::format("data.fold={}", fold));
  return all;
}

void check_folds(Disk& disk, const TrainSettings& s, std::int64_t folds) {
  for (std::int64_t fold = 1; fold <= folds; ++fold) {
    Problems problems;
    const PreparedRun prepared =
        prepare_run(disk, s.recipe, overrides_of(s, folds, fold), problems, data::usual_places(), s.system);
    problems.throw_if_any(s.recipe);
    if (!prepared.validation)
      bad_input("{}: folds are compared by their evaluations, but train.evaluate is false", s.recipe);
    const ExpectedWorld world = expected_world(s.world);
    check_system(make_job(prepared), world.workers, world.shares_memory, s.recipe);
  }
}

std::string folder_of_folds(Disk& disk, const TrainSettings& s, const std::string& command) try {
  if (s.run.empty())
    return create_folder(disk, s.root, std::filesystem::path(s.recipe).stem().string() + "-folds", "command.txt",
                         command + "\n");
  if (disk.exists(s.run) && (!disk.is_directory(s.run) || !disk.list(s.run).empty()))
    bad_input("{}: is not an empty folder; name another one with --run", s.run);
  disk.make_directories(s.run);
  write_file_atomically(disk, s.run + "/command.txt", command + "\n");
  return s.run;
} catch (const DiskError& problem) {
  bad_input("the folder of the folds cannot be made ({}); name another place with --run DIR", problem.what());
}

std::string table_of(const std::vector<FoldMetric>& metrics) {
  std::size_t width = 6;
  for (const FoldMetric& m : metrics) width = std::max(width, m.name.size());
  std::string text = fmt::format("{:<{}}  {:>12}  {:>12}  each fold\n", "metric", width, "mean", "deviation");
  for (const FoldMetric& m : metrics) {
    text += fmt::format("{:<{}}  {:>12}  {:>12} ", m.name, width, number_text(m.mean), number_text(m.deviation));
    for (const double v : m.values) text += " " + number_text(v);
    text += "\n";
  }
  return text;
}

Json to_json(const std::vector<FoldMetric>& metrics) {
  Json all = Json::object();
  for (const FoldMetric& m : metrics) all[m.name] = {{"mean", m.mean}, {"deviation", m.deviation}, {"folds", m.values}};
  return all;
}

}  // namespace

std::int64_t folds_of(const Recipe& recipe) {
  const auto folds = recipe.data.items.find("folds");
  if (folds == recipe.data.items.end() || recipe.data.items.contains("fold")) return 0;
  const auto* count = std::get_if<std::int64_t>(&folds->second.value);
  return count ? *count : 0;
}

std::vector<FoldMetric> fold_metrics(const std::vector<Json>& summaries) {
  std::vector<FoldMetric> metrics;
  if (summaries.empty()) return metrics;
  const auto add = [&](const std::string& key, const std::string& name) {
    FoldMetric m{.name = name, .values = {}};
    for (const Json& s : summaries) {
      if (!s.contains(key) || !s.at(key).is_number()) return;
      m.values.push_back(s.at(key).get<double>());
    }
    const auto n = static_cast<double>(m.values.size());
    for (const double v : m.values) m.mean += v / n;
    for (const double v : m.values) m.deviation += (v - m.mean) * (v - m.mean);
    m.deviation = n > 1 ? std::sqrt(m.deviation / (n - 1)) : 0;
    metrics.push_back(std::move(m));
  };
  const Json& first = summaries.front();
  if (first.contains("monitor")) add("best", "best " + first.at("monitor").get<std::string>());
  for (const char* prefix : {"val_", "test_"})
    for (const auto& [key, value] : first.items())
      if (key.starts_with(prefix)) add(key, key);
  return metrics;
}

void train_folds(const TrainSettings& s, std::int64_t folds, const std::vector<std::string>& world_words) {
  if (folds < 2) bad_input("--folds {}: cross-validation needs at least 2 folds; 5 or 10 are usual", folds);
  const auto disk = make_real_disk();
  check_folds(*disk, s, folds);
  const std::string folder = folder_of_folds(*disk, s, fmt::format("{} --folds {}", s.command(), folds));
  StopSignals signals;
  std::vector<Json> summaries;
  std::string failed;
  for (std::int64_t fold = 1; fold <= folds && !signals.flag(); ++fold) {
    const RunFolder run{fmt::format("{}/fold-{}", folder, fold)};
    Command command{.argv = {program_directory() + "/echelon", "train", s.recipe, "--run", run.path, "--json"},
                    .limit_seconds = 1e9,
                    .tick = {},
                    .stop = &signals.flag()};
    for (const std::string& o : overrides_of(s, folds, fold)) command.argv.insert(command.argv.end(), {"--set", o});
    if (!s.system.empty()) command.argv.insert(command.argv.end(), {"--system", s.system});
    command.argv.insert(command.argv.end(), world_words.begin(), world_words.end());
    const CommandResult result = run_command(command);
    const Json summary = read_run(*disk, run).summary;
    if (result.exit_code != 0 || !summary.is_object()) {
      failed += fmt::format("\nfold {}: {}", fold, result.output);
      continue;
    }
    if (was_interrupted(summary.value("stopped_by", std::string()))) break;
    summaries.push_back(summary);
    const std::string monitor = summary.value("monitor", std::string());
    fmt::print(stderr, "fold {} of {}: {}\n", fold, folds,
               monitor.empty() ? "done" : "best " + metric_text(monitor, summary.value("best", 0.0)));
  }
  const std::vector<FoldMetric> metrics = fold_metrics(summaries);
  const Json result{{"folder", folder}, {"folds", summaries.size()}, {"metrics", to_json(metrics)}};
  write_file_atomically(*disk, folder + "/folds.json", result.dump(1) + "\n");
  if (s.json)
    fmt::print("{}\n", result.dump());
  else
    fmt::print("{}\nfolds.json and all runs: {}\n", table_of(metrics), folder);
  if (!failed.empty()) fail("not all folds have trained:{}", failed);
  if (static_cast<std::int64_t>(summaries.size()) < folds)
    fail("stopped by a signal after {} of {} folds", summaries.size(), folds);
}

}  // namespace echelon::cli
