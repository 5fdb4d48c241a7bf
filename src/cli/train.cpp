// `echelon train`: from a recipe to a trained network in a run folder.

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/log_listener.h"
#include "cli/progress_listener.h"
#include "cli/report.h"
#include "cli/run_listeners.h"
#include "cli/verbs.h"
#include "recipe/differences.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "run/training.h"
#include "track/run.h"
#include "world/signals.h"

namespace echelon::cli {

namespace {

struct Settings {
  std::string recipe;
  std::vector<std::string> overrides;
  int cores = available_cores();
  std::string run, root = "runs";
  bool resume = false, json = false, trace = false;

  std::string command() const {  // that does the same
    std::string text = "echelon train " + recipe;
    for (const std::string& o : overrides) text += fmt::format(" --set '{}'", o);
    return text + fmt::format(" --cores {}{}", cores, resume ? " --resume" : "");
  }
};

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

RunFolder new_run(Disk& disk, const Settings& s, const std::string& recipe) try {
  return s.run.empty() ? create_run(disk, s.root, stem_of(s.recipe), recipe) : create_run_at(disk, s.run, recipe);
} catch (const DiskError& problem) {
  bad_input("the run's folder cannot be made ({}); name another place with --run DIR", problem.what());
}

// Training::resume, with the settings that differ where it refuses.
bool resume(Training& training, Disk& disk, const RunFolder& folder, const std::string& recipe) try {
  return training.resume();
} catch (const BadInput& problem) {
  std::string text = problem.what();
  for (const Difference& d :
       differences(parse_toml(read_text(disk, folder.recipe(), TomlLimits{}.bytes), ""), parse_toml(recipe, "")))
    text += fmt::format("\n  {} = {} in {}, {} here", d.key, d.first, folder.recipe(), d.second);
  throw BadInput(text);
}

// The run to go on with: the one that was named, or the newest of this recipe.
RunFolder run_to_resume(Disk& disk, const Settings& s) {
  if (!s.run.empty()) return open_run(disk, "", s.run);
  const std::string stem = stem_of(s.recipe) + "-";
  std::optional<RunFolder> newest;
  if (disk.is_directory(s.root))
    for (const RunInfo& run : list_runs(disk, s.root))
      if (run.folder.name().starts_with(stem)) newest = run.folder;
  if (!newest)
    bad_input("there is no run of {} in {} to resume; name one with --run DIR, or leave out --resume", s.recipe,
              s.root);
  return *newest;
}

nlohmann::ordered_json to_json(const RunSummary& r, const RunFolder& folder) {
  nlohmann::ordered_json j{{"steps", r.steps}, {"epochs", r.epochs}, {"train_loss", r.train_loss}};
  if (r.train_accuracy >= 0) j["train_accuracy"] = r.train_accuracy;
  if (r.test) {
    j["test_loss"] = r.test->loss;
    if (r.test->accuracy >= 0) j["test_accuracy"] = r.test->accuracy;
  }
  j["samples_per_s"] = r.samples_per_s;
  j["seconds"] = r.seconds;
  j["input_bound"] = r.waited_for_input;
  j["peak_share"] = r.peak_share;
  j["weights_sha256"] = r.weights_sha256;
  j["run_dir"] = folder.path;
  j["stopped_by"] = r.stopped_by;
  return j;
}

double epochs_of(const PreparedRun& prepared) {
  const data::Cursor last = prepared.walk().at(static_cast<std::uint64_t>(prepared.total_steps - 1));
  return last.epoch +
         static_cast<double>(last.samples.first + last.samples.count) / static_cast<double>(prepared.train->size());
}

// Steps between lines of metrics: as the recipe says, or about a hundred lines an epoch.
std::int64_t log_every(const PreparedRun& prepared) {
  if (prepared.recipe.train.log_every > 0) return prepared.recipe.train.log_every;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(prepared.walk().steps_before(1)) / 100);
}

RunSummary run_logged(Training& training, const StopSignals& signals, LogListener& log) {
  try {
    const RunSummary summary = training.run(signals.flag());
    if (summary.stopped_by == "signal") log.write("end", fmt::format("stopped by {}", signals.name()));
    return summary;
  } catch (const std::exception& problem) {
    log.write("error", problem.what());
    throw;
  }
}

void train(const Settings& s) {
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  Problems problems;
  PreparedRun prepared = prepare_run(*disk, s.recipe, s.overrides, problems);
  problems.throw_if_any(s.recipe);
  const TrainingJob job = make_job(prepared);
  Cores cores(s.cores);

  // Whatever could be refused has been refused: from here on there is a run folder.
  const std::string resolved = resolved_toml(prepared.recipe);
  const RunFolder folder = s.resume ? run_to_resume(*disk, s) : new_run(*disk, s, resolved);
  const StopSignals signals;
  Training training(job, *disk, *clock, cores, folder.checkpoints(), static_cast<int>(prepared.recipe.train.keep));
  std::ostream& out = s.json ? std::cerr : std::cout;  // --json keeps stdout for the result
  ProgressListener progress(out, s.json ? 2 : 1, *clock, epochs_of(prepared));
  LogListener log(*disk, *clock, folder, 0);
  training.add(progress);
  training.add(log);
  const auto tell = [&](const std::string& note) { progress.on_note(note), log.on_note(note); };
  log.write("start", s.command());
  if (s.resume && !resume(training, *disk, folder, resolved))
    tell("no usable checkpoint in " + folder.checkpoints() + ": starting from the first step");
  MetricsListener metrics(*disk, *clock, folder, training.next_step(), log_every(prepared), tell);
  training.add(metrics);
  training.save_after([&] { return metrics.flush(); });
  std::optional<TraceListener> trace;
  if (s.trace) training.add(trace.emplace(*disk, *clock, cores, training.trainer(), folder, tell));

  const std::string beginning = opening(prepared, s.cores, training, folder);
  out << beginning << std::flush;
  log.write("start", beginning);
  const RunSummary summary = run_logged(training, signals, log);
  progress.finish();
  metrics.finish();
  if (trace) trace->finish();
  const auto json = to_json(summary, folder);
  write_summary(*disk, folder, Json(json));
  log.write("end", json.dump());
  if (summary.stopped_by == "signal")
    fmt::print(stderr, "stopped by {}: saved at step {}. Go on with: echelon train {} --run {} --resume\n",
               signals.name(), summary.steps, s.recipe, folder.path);
  if (s.json)
    fmt::print("{}\n", json.dump());
  else
    print_result(out, prepared, training, summary, cores, folder, s.recipe);
  if (!summary.not_saved.empty())
    fail("the weights at the end were not saved ({}). Make room, then: echelon train {} --run {} --resume",
         summary.not_saved, s.recipe, folder.path);
}

}  // namespace

void add_train(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("train", "Train a network as a recipe says");
  auto s = std::make_shared<Settings>();
  verb->add_option("recipe", s->recipe, "A recipe (TOML); `echelon init` writes one")->required();
  verb->add_option("--set", s->overrides, "Change one setting of the recipe: --set optim.lr=0.05")
      ->allow_extra_args(false);
  verb->add_option("--cores", s->cores, "Cores to use; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  verb->add_option("--run", s->run, "The run's folder (default: a new one in runs/)");
  verb->add_flag("--resume", s->resume, "Go on from the last checkpoint of --run, or of this recipe's newest run");
  verb->add_flag("--trace", s->trace, "Write trace.json for Perfetto or chrome://tracing into the run's folder");
  verb->add_flag("--json", s->json, "Print one JSON object with the result as the last line");
  verb->footer(
      "Examples:\n"
      "  echelon train recipes/demo.toml\n"
      "  echelon train recipes/demo.toml --set train.epochs=20 --set optim.lr=0.02\n"
      "  echelon train recipes/demo.toml --resume          after Ctrl-C, a crash or a kill\n"
      "Ctrl-C and SIGTERM save and stop; a second one stops at once.");
  verb->callback([s] { train(*s); });
}

}  // namespace echelon::cli
