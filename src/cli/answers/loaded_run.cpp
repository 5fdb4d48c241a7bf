#include "cli/answers/loaded_run.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cli/models/registered_model.h"
#include "cli/report.h"
#include "cli/runs/run_samples.h"
#include "run/job.h"
#include "run/weights.h"
#include "world/os/folder_disk.h"

namespace echelon::cli {

namespace {

Checkpoint find_checkpoint(Disk& disk, const RunFolder& folder, const std::string& which) {
  if (which == "best" || which == "last") {
    CheckpointSearch search =
        which == "best" ? best_valid(disk, folder.checkpoints()) : latest_valid(disk, folder.checkpoints());
    if (!search.found) {
      std::string why;
      for (const std::string& s : search.skipped) why += "\n  " + s;
      bad_input("{} has no checkpoint that can be used{}", folder.path, why);
    }
    for (const std::string& s : search.skipped) fmt::print(stderr, "skipped a checkpoint: {}\n", s);
    if (!search.skipped.empty())
      fmt::print(stderr, "using the checkpoint of step {} instead\n", search.found->manifest.position.step);
    return std::move(*search.found);
  }
  const std::string digits = which.starts_with("step-") ? which.substr(5) : which;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size())
    bad_input("--checkpoint takes best, last or a step, not '{}'", which);
  std::string there;
  for (const CheckpointEntry& e : list_checkpoints(disk, folder.checkpoints())) {
    if (e.step == step) return open_checkpoint(disk, e.path);
    there += fmt::format(" {}", e.step);
  }
  bad_input("{} has no checkpoint of step {}; {}{}", folder.path, step,
            there.empty() ? "there is none" : "there are those of steps", there);
}

std::string in_words(const LoadedRun& run, const std::string& which) {
  const TrainingPosition& at = run.manifest.position;
  const std::string step = fmt::format("step {}", at.step);
  if (which == "last") return step + ", the last";
  if (which != "best") return step;
  if (!at.score) return step + ", the last, because no step was evaluated";
  const auto& p = run.prepared;
  const std::string metric =
      p.monitor
          ? p.monitor->name
          : (usual_metrics(p.model->task()).empty() || p.model->task() == models::Task::regress ? "loss" : "accuracy");
  return fmt::format("{}, the best ({})", step, rule_of_best(fmt::format("{}_{}", p.evaluated_part(), metric)));
}

// The weights mean what the recipe says only if it is the one that they were trained with.
void expect_same_recipe(const LoadedRun& run) {
  const TrainingJob job = make_job(run.prepared);
  const TrainingPosition& saved = run.manifest.position;
  if (saved.model != job.model_fingerprint || saved.recipe != job.recipe_fingerprint || saved.seed != job.seed)
    bad_input(
        "{} is not the recipe that the weights of step {} were trained with: it has been changed since. Put the old "
        "one back, or train anew",
        run.folder.recipe(), saved.step);
  if (saved.data != job.data_fingerprint)
    fmt::print(stderr, "note: the training data are not those that the weights of step {} were trained with\n",
               saved.step);
}

}  // namespace

LoadedRun load_run(Disk& disk, const std::string& run, const std::string& which, bool average, RunData data) {
  if (names_version(run) && !disk.exists(RunFolder{run}.recipe()) && !disk.exists(RunFolder{"runs/" + run}.recipe())) {
    if (which != "best") bad_input("{} is one checkpoint already: leave out --checkpoint {}", run, which);
    OpenRegistry open = open_registry("runs");
    const RegisteredModel named = registered_model(open, run);
    LoadedRun loaded = load_run(disk, named.folder.path, std::to_string(named.version.step), average, data);
    loaded.which += fmt::format(", {}@{}", named.version.model, named.version.version);
    return loaded;
  }
  LoadedRun loaded{.disk = {},
                   .folder = open_run(disk, "runs", run),
                   .prepared = {},
                   .table = {},
                   .parameters = {},
                   .manifest = {},
                   .which = {}};
  loaded.disk = make_folder_disk(loaded.folder.path);
  Problems problems;
  std::optional<data::DatasetInfo> kept;
  if (data == RunData::described) kept = kept_samples(*loaded.disk, loaded.folder);
  loaded.prepared = kept ? prepare_described_run(*loaded.disk, loaded.folder.recipe(), *kept, problems)
                         : prepare_run(*loaded.disk, loaded.folder.recipe(),
                                       with_kept_encoder(*loaded.disk, loaded.folder), problems);
  problems.throw_if_any(loaded.folder.recipe());
  for (const auto& phase : loaded.prepared.model->training(1)) loaded.table.include(phase.graph);
  loaded.table.include(loaded.prepared.model->evaluation(1));
  loaded.parameters = Buffer(loaded.table.floats() * sizeof(float));
  Checkpoint checkpoint = find_checkpoint(*loaded.disk, loaded.folder, which);
  load_weights(checkpoint.weights, loaded.table, loaded.parameters.as<float>());
  if (average) load_average(checkpoint.state, loaded.table, *loaded.prepared.model, loaded.parameters.as<float>());
  loaded.manifest = checkpoint.manifest;
  loaded.which = in_words(loaded, which);
  expect_same_recipe(loaded);
  return loaded;
}

std::vector<std::string> class_names_of(const data::DatasetInfo& info) {
  if (!info.class_names.empty()) return info.class_names;
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < info.classes; ++c) names.push_back(std::to_string(c));
  return names;
}

}  // namespace echelon::cli
