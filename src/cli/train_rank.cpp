#include "cli/train_rank.h"

#include <atomic>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/log_listener.h"
#include "cli/progress_listener.h"
#include "cli/report.h"
#include "cli/run_listeners.h"
#include "cli/trace_listener.h"
#include "recipe/differences.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "track/run.h"
#include "world/os/folder_lock.h"
#include "world/os/signals.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

std::string TrainSettings::command() const {
  std::string text = "echelon train " + recipe;
  if (!system.empty()) text += " --system " + system;
  for (const std::string& o : overrides) text += fmt::format(" --set '{}'", o);
  return text + world.command() + (resume ? " --resume" : "");
}

namespace {

// The command that trains the same once more, and what it will get. Only exact training is the recipe's alone; what
// another system gets depends on how many its workers are, and often on who comes first.
std::string command_to_repeat(const TrainSettings& s, const World& world, bool exact) {
  TrainSettings again = s;
  again.resume = false;
  if (exact) again.world.cores = 1;
  const std::string start = !exact && world.place().world == "mpi" ? fmt::format("mpirun -np {} ", world.size()) : "";
  return start + again.command() + (exact ? "        the same weights, bit for bit" : "        once more");
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

RunFolder new_run(Disk& disk, const TrainSettings& s, const std::string& recipe) try {
  return s.run.empty() ? create_run(disk, s.root, stem_of(s.recipe), recipe) : create_run_at(disk, s.run, recipe);
} catch (const DiskError& problem) {
  bad_input("the run's folder cannot be made ({}); name another place with --run DIR", problem.what());
}

// A folder without a checkpoint has a recipe all the same, and is not to become a run of another one.
void expect_recipe_of(Disk& disk, const RunFolder& folder, const TrainingJob& job) {
  Problems problems;
  const PreparedRun begun = prepare_run(disk, folder.recipe(), {}, problems, data::usual_places(), "");
  problems.throw_if_any(folder.recipe());
  const TrainingJob was = make_job(begun);
  if (was.model_fingerprint != job.model_fingerprint || was.data_fingerprint != job.data_fingerprint ||
      was.seed != job.seed || was.recipe_fingerprint != job.recipe_fingerprint)
    bad_input("{} was begun with another recipe: go on with that, or start a new run", folder.path);
}

// Training::resume, with the settings that differ where it refuses.
bool resume(Training& training, Disk& disk, const RunFolder& folder, const PreparedRun& prepared,
            const TrainingJob& job, bool first) try {
  if (training.resume()) return true;
  if (first) expect_recipe_of(disk, folder, job);
  return false;
} catch (const BadInput& problem) {
  std::string text = problem.what();
  for (const Difference& d : differences(parse_toml(read_text(disk, folder.recipe(), TomlLimits{}.bytes), ""),
                                         parse_toml(resolved_toml(prepared.recipe), "")))
    text += fmt::format("\n  {} = {} in {}, {} here", d.key, d.first, folder.recipe(), d.second);
  throw BadInput(text + "\nIt goes on with: " + resuming_command(folder));
}

// The run to go on with: the one that was named, or the newest of this recipe.
RunFolder run_to_resume(Disk& disk, const TrainSettings& s) {
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

nlohmann::ordered_json to_json(const RankTimes& t, double input) {
  nlohmann::ordered_json waiting = nlohmann::ordered_json::object();
  for (std::size_t r = 0; r < t.waiting_for.size(); ++r)
    if (t.waiting_for[r] > 0) waiting[std::to_string(r)] = t.waiting_for[r];
  return {{"compute_s", t.compute}, {"exchange_s", t.exchange}, {"input_s", input}, {"waiting_for_s", waiting}};
}

nlohmann::ordered_json to_json(const RunSummary& r, const RunFolder& folder, const World& world) {
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
  if (r.bytes >= 0) j["bytes"] = r.bytes;
  for (const auto& [name, value] : r.system) j["system"][name] = value;
  j["world"] = world.place().world;
  j["workers"] = world.size();
  j["working_workers"] = r.working;
  if (world.size() > 1)
    for (const RunSummary::Rank& rank : r.ranks) j["ranks"].push_back(to_json(rank.times, rank.input));
  return j;
}

double epochs_of(const PreparedRun& prepared) {
  const data::Cursor last = prepared.batch_sequence().at(static_cast<std::uint64_t>(prepared.total_steps - 1));
  return last.epoch +
         static_cast<double>(last.samples.first + last.samples.count) / static_cast<double>(prepared.train->size());
}

// Steps between lines of metrics: as the recipe says, or about a hundred lines an epoch.
std::int64_t log_every(const PreparedRun& prepared) {
  if (prepared.recipe.train.log_every > 0) return prepared.recipe.train.log_every;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(prepared.batch_sequence().steps_before(1)) / 100);
}

RunSummary run_logged(Training& training, const std::atomic<bool>& stop, LogListener& log) {
  try {
    const RunSummary summary = training.run(stop);
    log.write("end", fmt::format("stopped by {} after step {}", summary.stopped_by, summary.steps));
    return summary;
  } catch (const std::exception& problem) {
    log.write("error", problem.what());
    throw;
  }
}

// Rank 0 makes or opens the run's folder, keeps others away, and tells the other ranks where it is.
RunFolder agree_on_folder(Team& team, Disk& disk, const TrainSettings& s, const PreparedRun& prepared,
                          std::unique_ptr<FolderLock>& lock) {
  RunFolder folder;
  if (team.world().rank() == 0) {
    folder = s.resume ? run_to_resume(disk, s) : new_run(disk, s, resolved_toml(prepared.recipe));
    lock = lock_folder(folder.path);
    if (!lock)
      bad_input("another process is training in {}: wait for its end, or name a folder with --run", folder.path);
  }
  std::uint64_t length = folder.path.size();
  team.broadcast(std::as_writable_bytes(std::span(&length, 1)));
  folder.path.resize(length);
  team.broadcast(std::as_writable_bytes(std::span(folder.path)));
  return folder;
}

// "system easgd: rule elastic, exchange server, sync async\n"; nothing where nobody has named one.
std::string system_in_words(const Recipe& recipe, const TrainingJob& job, int workers) {
  const Composition* c = job.composition.get();
  if (recipe.system.empty() && !c) return "";
  const std::string name = "system" + (recipe.system.empty() ? "" : " " + recipe.system);
  if (workers == 1) return name + ": one worker alone has nobody to exchange with\n";
  if (!c) return name + ": the exact sum of all gradients in every step\n";
  return fmt::format("{}: rule {}, exchange {}, sync {}{}\n", name, c->rule_name, c->exchange_name, c->sync_name,
                     c->codec_name == "none" ? "" : ", codec " + c->codec_name);
}

// What rank 0 does besides training: it tells people and files what happens.
class Narrator {
 public:
  Narrator(const TrainSettings& s, const PreparedRun& prepared, Disk& disk, Clock& clock, const RunFolder& folder,
           LogListener& log, bool plain)
      : settings_(s),
        prepared_(prepared),
        disk_(disk),
        clock_(clock),
        folder_(folder),
        log_(log),
        out_(s.json ? std::cerr : std::cout),  // --json keeps stdout for the result
        progress_(out_,
                  plain    ? -1
                  : s.json ? 2
                           : 1,
                  clock, epochs_of(prepared)) {}  // mpirun's terminal is none

  void note(const std::string& text) { progress_.on_note(text), log_.on_note(text); }

  void before(Training& training, const TrainingJob& job, const World& world, Cores& cores) {
    metrics_.emplace(disk_, clock_, folder_, training.next_step(), log_every(prepared_),
                     [this](const std::string& text) { note(text); });
    training.add(*metrics_);
    training.save_after([this] { return metrics_->flush(); });
    const bool exact = !job.composition;  // then the shards of a batch are spread over all workers
    const std::string text = system_in_words(prepared_.recipe, job, world.size()) +
                             opening(prepared_, cores.count() * (exact ? world.size() : 1),
                                     in_words(settings_.world, world), training, folder_);
    out_ << text << std::flush;
    log_.write("start", text);
  }

  void after(Training& training, const RunSummary& summary, const World& world, Cores& cores, bool exact) {
    progress_.finish();
    metrics_->finish();
    const auto json = to_json(summary, folder_, world);
    write_summary(disk_, folder_, Json(json));
    log_.write("end", json.dump());
    if (summary.stopped_by == "signal")
      fmt::print(stderr, "stopped by a signal: saved at step {}. Go on with: {}\n", summary.steps,
                 resuming_command(folder_));
    if (settings_.json)
      fmt::print("{}\n", json.dump());
    else
      print_result(out_, prepared_, training, summary, cores, folder_, command_to_repeat(settings_, world, exact));
    if (!summary.not_saved.empty())
      fail("the weights at the end were not saved ({}). Make room, then: {}", summary.not_saved,
           resuming_command(folder_));
  }

  RunListener& progress() { return progress_; }

 private:
  const TrainSettings& settings_;
  const PreparedRun& prepared_;
  Disk& disk_;
  Clock& clock_;
  const RunFolder& folder_;
  LogListener& log_;
  std::ostream& out_;
  ProgressListener progress_;
  std::optional<MetricsListener> metrics_;
};

}  // namespace

void train_rank(World& world, const TrainSettings& s, const PreparedRun& prepared, const TrainingJob& job) {
  std::optional<StopSignals> signals;  // one for each process
  if (world.rank() == 0 || !shares_process(world.place())) signals.emplace();
  const std::atomic<bool> never = false;
  const auto disk = make_real_disk();  // a simulated world's own disks are for its inhabitants
  Clock& clock = world.clock();
  const auto real_clock = make_real_clock();  // files and people live in real time, also if the ranks do not
  Cores cores(cores_each(s.world, world));
  check_system(job, world.size(), world.shared_memory() != nullptr, s.recipe);
  const bool composed = job.composition && world.size() > 1;
  const auto meter = world.size() > 1 && !world.sent() ? make_metered(world) : nullptr;  // unless it counts already
  Team team(meter ? *meter : world, cores, composed);
  const bool first = world.rank() == 0;

  // Whatever could be refused has been refused: from here on there is a run folder.
  std::unique_ptr<FolderLock> lock;  // rank 0's, until the end
  const RunFolder folder = agree_on_folder(team, *disk, s, prepared, lock);

  LogListener log(*disk, *real_clock, folder, world.rank());
  log.write("start", s.command());
  std::optional<Narrator> narrator;
  if (first) narrator.emplace(s, prepared, *disk, *real_clock, folder, log, world.place().world == "mpi");
  auto note = [&](const std::string& text) { first ? narrator->note(text) : log.on_note(text); };
  team.on_late = [&](const WaitNotice& late) {
    note(late.text);
    if (!first && late.names(0))  // which cannot say so itself
      fmt::print(stderr, "rank {}: {}\n", world.rank(), late.text);
  };

  Training training(job, *disk, clock, team, folder.checkpoints(), static_cast<int>(prepared.recipe.train.keep));
  training.add(log);
  if (first) training.add(narrator->progress());
  if (s.resume && !resume(training, *disk, folder, prepared, job, first))
    note("no usable checkpoint in " + folder.checkpoints() + ": starting from the first step");
  std::optional<TraceListener> trace;
  if (s.trace) training.add(trace.emplace(team, training.engine()));
  if (first) narrator->before(training, job, world, cores);
  const RunSummary summary = run_logged(training, signals ? signals->flag() : never, log);
  if (trace) trace->write(*disk, folder.trace(), note);
  if (first) narrator->after(training, summary, world, cores, !composed);
}

}  // namespace echelon::cli
