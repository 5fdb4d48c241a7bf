#include "cli/training/train_rank.h"

#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/answers/metric_text.h"
#include "cli/report.h"
#include "cli/runs/run_cluster.h"
#include "cli/runs/run_samples.h"
#include "cli/training/histogram_listener.h"
#include "cli/training/log_listener.h"
#include "cli/training/predicted_plan.h"
#include "cli/training/progress_listener.h"
#include "cli/training/run_listeners.h"
#include "cli/training/run_record.h"
#include "cli/training/trace_listener.h"
#include "cli/training/train_folder.h"
#include "run/interrupted.h"
#include "run/job.h"
#include "run/memory_limit.h"
#include "run/run_plan.h"
#include "track/control.h"
#include "track/curve.h"
#include "track/run.h"
#include "world/os/folder_disk.h"
#include "world/os/host.h"
#include "world/os/signals.h"
#include "world/sim/disk_with_room_of.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

std::string TrainSettings::command() const {
  std::string text = "echelon train " + shell_quoted(recipe);
  if (!system.empty()) text += " --system " + shell_quoted(system);
  if (!plan.empty()) text += " --plan " + shell_quoted(plan);
  if (!memory.empty()) text += " --memory " + shell_quoted(memory);
  for (const std::string& o : overrides) text += " --set " + shell_quoted(o);
  text += world.command();
  if (!run.empty()) text += " --run " + shell_quoted(run);
  if (resume != Resume::no) text += resume == Resume::yes ? " --resume" : " --resume=auto";
  if (restart) text += " --restart";
  if (elastic != Elastic::no) text += elastic == Elastic::shrink ? " --elastic=shrink" : " --elastic";
  return text;
}

namespace {

// The command that trains the same weights once more, where that is the recipe's doing alone (exact training) and not
// the command that was just given; else empty. A run that went on is repeated by its folder's recipe.
std::string command_to_repeat(const TrainSettings& s, const RunFolder& folder, bool resumed, bool exact) {
  if (!exact) return "";
  TrainSettings again;
  again.recipe = resumed ? folder.recipe() : s.recipe;
  if (!resumed) again.system = s.system, again.overrides = s.overrides;
  again.world.cores = 1;
  TrainSettings given = s;
  given.run.clear();
  return again.command() == given.command() ? "" : again.command() + "        the same weights, bit for bit";
}

nlohmann::ordered_json to_json(const RankTimes& t, double input) {
  nlohmann::ordered_json waiting = nlohmann::ordered_json::object();
  for (std::size_t r = 0; r < t.waiting_for.size(); ++r)
    if (t.waiting_for[r] > 0) waiting[std::to_string(r)] = t.waiting_for[r];
  return {{"compute_s", t.compute}, {"exchange_s", t.exchange}, {"input_s", input}, {"waiting_for_s", waiting}};
}

nlohmann::ordered_json to_json(const RunSummary& r, const RunFolder& folder, const PreparedRun& prepared,
                               const World& world) {
  nlohmann::ordered_json j{{"steps", r.steps}, {"epochs", r.epochs}, {"train_loss", r.train_loss}};
  if (r.train_accuracy >= 0) j["train_accuracy"] = r.train_accuracy;
  if (r.validation)
    for (const auto& [name, value] : named_values(*r.validation, "val_")) j[name] = value;
  if (r.test) {
    for (const auto& [name, value] : named_values(*r.test, "test_")) j[name] = value;
    j["tested_step"] = r.tested_step;
  }
  if (!r.monitor.empty()) {
    j["monitor"] = r.monitor;
    j["best"] = r.best;
    j["best_step"] = r.best_step;
  }
  j["samples_per_s"] = r.samples_per_s;
  j["seconds"] = r.seconds;
  j["input_bound"] = r.waited_for_input;
  j["peak_share"] = r.peak_share;
  j["weights_sha256"] = r.weights_sha256;
  j["run_dir"] = folder.path;
  j["stopped_by"] = r.stopped_by;
  if (const auto& start = prepared.recipe.start) j["init"] = {{"from", start->from}, {"sha256", start->sha256}};
  if (r.bytes >= 0) j["bytes"] = r.bytes;
  for (const auto& [name, value] : r.system) j["system"][name] = value;
  j["world"] = world.place().world;
  j["workers"] = world.size();
  j["working_workers"] = r.working;
  if (world.size() > 1)
    for (const RankSummary& rank : r.ranks) j["ranks"].push_back(to_json(rank.times, rank.input));
  return j;
}

// What was predicted of a split model, and what came of it: the share of time in which ranks did not compute.
void add_plan(nlohmann::ordered_json& json, const Json& plan, const RunSummary& r) {
  json["plan"] = plan["plan"];
  json["predicted_idle"] = plan["idle"];
  double computing = 0, all = 0;
  for (const RankSummary& rank : r.ranks)
    computing += rank.times.compute, all += rank.times.compute + rank.times.exchange;
  if (all > 0) json["idle"] = 1 - computing / all;
  if (plan.contains("bytes_per_step")) json["predicted_bytes_per_step"] = plan["bytes_per_step"];
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

RunSummary run_logged(Training& training, const std::atomic<bool>& stop, LogListener& log, RunCluster& cluster) {
  try {
    const RunSummary summary = training.run(stop);
    log.write("end", fmt::format("stopped by {} after step {}", summary.stopped_by, summary.steps));
    return summary;
  } catch (const std::exception& problem) {
    log.write("error", problem.what());
    cluster.add_failure(problem);
    throw;
  }
}

// Rank 0 makes or opens the run's folder, keeps others away, and tells the other ranks where it is.
TrainFolder agree_on_folder(Team& team, Disk& disk, const TrainSettings& s, const PreparedRun& prepared) {
  TrainFolder opened;
  if (team.world().rank() == 0) opened = open_train_folder(disk, s, prepared);
  struct Head {
    std::uint64_t length, resumes;
  } head{opened.folder.path.size(), opened.resumes};
  team.broadcast(std::as_writable_bytes(std::span(&head, 1)));
  opened.resumes = head.resumes != 0;
  opened.folder.path.resize(head.length);
  team.broadcast(std::as_writable_bytes(std::span(opened.folder.path)));
  return opened;
}

// "system easgd: rule elastic, exchange server, sync async\n"; nothing where nobody has named one.
std::string system_in_words(const Recipe& recipe, const TrainingJob& job, int workers) {
  const Composition* c = job.composition.get();
  if (recipe.system.empty() && !c) return "";
  const std::string name = "system" + (recipe.system.empty() ? "" : " " + recipe.system);
  if (workers == 1) return name + ": one worker alone has no other to exchange with\n";
  if (!c) return name + ": the exact sum of all gradients in every step\n";
  return fmt::format("{}: rule {}, exchange {}, sync {}{}\n", name, c->rule_name, c->exchange_name, c->sync_name,
                     c->codec_name == "none" ? "" : ", codec " + c->codec_name);
}

// "plan data=2,pipeline=2,schedule=1f1b: 2 replicas on 2 workers each\n"; nothing where no model is split.
std::string plan_in_words(const PlanSpec& plan) {
  if (!plan.splits_model()) return "";
  const int each = plan.pipeline * plan.tensor;
  return fmt::format("plan {}: {} replica{}, each on {} worker{}{}\n", to_string(plan), plan.data,
                     plan.data == 1 ? "" : "s", each, each == 1 ? "" : "s",
                     plan.has_own_result() ? "; asynchronous, with a result of its own" : "");
}

// What rank 0 does besides training: it tells people and files what happens.
class Narrator {
 public:
  Narrator(const TrainSettings& s, const PreparedRun& prepared, Disk& disk, Clock& clock, const TrainFolder& opened,
           LogListener& log, bool plain)
      : settings_(s),
        prepared_(prepared),
        disk_(disk),
        clock_(clock),
        folder_(opened.folder),
        resumed_(opened.resumes),
        log_(log),
        out_(s.quiet  ? nowhere_
             : s.json ? std::cerr
                      : std::cout),  // --json keeps stdout for the result
        progress_(out_,
                  plain || s.quiet ? -1
                  : s.json         ? 2
                                   : 1,
                  clock, epochs_of(prepared)) {}  // mpirun's terminal is none

  void note(const std::string& text) { progress_.on_note(text), log_.on_note(text); }

  void before(Training& training, const TrainingJob& job, const World& world, Cores& cores) {
    before_ = training.next_step();
    metrics_.emplace(disk_, clock_, folder_, training.next_step(), log_every(prepared_),
                     [this](const std::string& text) { note(text); });
    training.add(*metrics_);
    training.save_after([this] { return metrics_->flush(); });
    training.add(histograms_.emplace(disk_, folder_, training.engine()));
    const bool exact = !job.composition;  // then the shards of a batch are spread over all workers
    const std::string text = system_in_words(prepared_.recipe, job, world.size()) + plan_in_words(job.plan) +
                             opening(prepared_, cores.count() * (exact ? world.size() : 1),
                                     in_words(settings_.world, world), training, folder_);
    if (settings_.generation == 1) out_ << text << std::flush;
    log_.write("start", text);
    put_into_registry();
  }

  // Others go on from here.
  void hand_over() {
    progress_.finish();
    metrics_->finish();
  }

  // `plan`: as predicted_plan gives it, or null. `signal`: that has come; empty: none.
  void after(Training& training, const RunSummary& summary, const World& world, Cores& cores, bool exact,
             const Json& plan, const std::string& signal) {
    progress_.finish();
    metrics_->finish();
    auto json = to_json(summary, folder_, prepared_, world);
    if (!signal.empty()) json["signal"] = signal;
    if (settings_.kept) json["generations"] = settings_.generation;
    if (resumed_ && summary.steps == before_) keep_figures(json);
    if (!plan.is_null()) add_plan(json, plan, summary);
    const std::string unwritten = try_to_write_summary(Json(json));
    log_.write("end", json.dump());
    put_into_registry();
    if (settings_.result) settings_.result(json.dump());
    if (settings_.quiet) return expect_saved(summary, unwritten);
    if (was_interrupted(summary.stopped_by))
      fmt::print(stderr, "stopped by a {}: saved at step {}. Go on with: {}\n", summary.stopped_by, summary.steps,
                 resuming_command(folder_));
    const std::optional<Predictions> predictions = predict_test(prepared_, training, summary, cores);
    if (predictions) try_to_write(folder_.evaluation(), to_json(*predictions, prepared_));
    if (settings_.json)
      fmt::print("{}\n", json.dump());
    else
      print_result(out_, prepared_, predictions, summary, folder_, curve(),
                   command_to_repeat(settings_, folder_, resumed_, exact), resumed_ ? before_ : 0);
    expect_saved(summary, unwritten);
  }

  RunListener& progress() { return progress_; }

 private:
  void expect_saved(const RunSummary& summary, const std::string& unwritten) const {
    if (!summary.not_saved.empty())
      fail("the weights at the end were not saved ({}). Make room, then: {}", summary.not_saved,
           resuming_command(folder_));
    if (!unwritten.empty()) fail("the weights are saved, but the summary is not ({})", unwritten);
  }

  // Nothing was left to train: how fast and how long that was is what the run's summary says already.
  void keep_figures(nlohmann::ordered_json& json) const {
    const Json was = read_run(disk_, folder_).summary;
    for (const char* key : {"samples_per_s", "seconds", "input_bound", "peak_share", "stopped_by"}) {
      if (was.is_object() && was.contains(key))
        json[key] = was.at(key);
      else if (std::string_view(key) != "stopped_by")
        json.erase(key);
    }
  }

  std::string try_to_write_summary(const Json& summary) try {
    write_summary(disk_, folder_, summary);
    return "";
  } catch (const DiskError& problem) {  // whether the weights are saved is more important
    return problem.what();
  }

  void try_to_write(const std::string& path, const Json& json) {
    try {
      write_file_atomically(disk_, path, json.dump() + "\n");
    } catch (const DiskError& problem) {
      log_.on_note(problem.what());
    }
  }

  // The loss as a picture, where somebody looks at a terminal.
  std::string curve() {
    if (!is_terminal(1)) return "";
    const auto points = read_metrics(disk_, folder_.metrics()).points;
    std::vector<Series> all;
    for (const char* metric : {"train_loss", "val_loss", "test_loss"})
      if (Series s = series_of(points, metric); s.x.size() > 1)
        all.push_back(std::string(metric) == "train_loss" ? smoothed(s, 8) : std::move(s));
    if (all.empty()) return "";
    return plot_text(all, {.title = "loss", .x_label = "step", .y_label = "", .log_y = true},
                     std::min(100, terminal_columns(1)), 14, true);
  }

  // Whoever asks the registry brings it up to date first, so nothing is lost if this does not succeed.
  void put_into_registry() {
    if (const std::string problem = tell_registry(folder_); !problem.empty()) log_.on_note("registry: " + problem);
  }

  const TrainSettings& settings_;
  const PreparedRun& prepared_;
  Disk& disk_;
  Clock& clock_;
  const RunFolder& folder_;
  const bool resumed_;
  std::int64_t before_ = 0;  // steps that were done when this process began
  LogListener& log_;
  std::ostream nowhere_{nullptr};
  std::ostream& out_;
  ProgressListener progress_;
  std::optional<MetricsListener> metrics_;
  std::optional<HistogramListener> histograms_;
};

}  // namespace

void train_rank(World& world, const TrainSettings& s, const PreparedRun& prepared, TrainingJob job) {
  std::optional<StopSignals> signals;  // one for each process
  if (world.rank() == 0 || !shares_process(world.place())) signals.emplace();
  const std::atomic<bool> never = false;
  const auto outer_disk = make_real_disk();  // a simulated world's own disks are for its inhabitants
  Clock& clock = world.clock();
  const auto real_clock = make_real_clock();  // files and people live in real time, also if the ranks do not
  check_system(job, world.size(), world.shared_memory() != nullptr, s.recipe);
  Problems problems;
  job.plan = check_run_plan(prepared, job.plan, world.size(), s.world.cores, problems);
  if (problems.empty() && !s.memory.empty() && known_workers(s.world) == 0)
    check_memory_limit(prepared, job.plan, world.size(), read_memory_size(s.memory, "--memory"), problems);
  problems.throw_if_any(s.recipe);
  Cores cores(job.plan.splits_model() ? 1 : cores_each(s.world, world));
  const bool composed = job.composition && world.size() > 1;
  const auto meter = world.size() > 1 && !world.sent() ? make_metered(world) : nullptr;  // unless it counts already
  Team team(meter ? *meter : world, cores, composed || job.plan.splits_model());
  if (s.trace) team.keep_waits();
  const bool first = world.rank() == 0;
  team.timeout = s.world.stopped_after;
  if (world.size() > 1) {
    WaitOptions waits = team.group().wait_policy().options();
    waits.limit = s.world.stopped_after;
    team.group().wait_policy().set_options(std::move(waits));
  }

  // Whatever could be refused has been refused: from here on there is a run folder.
  const TrainFolder opened = agree_on_folder(team, *outer_disk, s, prepared);  // rank 0 holds its lock until the end
  const RunFolder& folder = opened.folder;
  const auto disk = make_folder_disk(folder.path);

  LogListener log(*disk, *real_clock, folder, world.rank());
  log.write("start", s.command());
  std::optional<Narrator> narrator;
  if (first) narrator.emplace(s, prepared, *disk, *real_clock, opened, log, world.place().world == "mpi");
  auto note = [&](const std::string& text) { first ? narrator->note(text) : log.on_note(text); };
  team.on_late = [&](const WaitNotice& late) {
    note(late.text);
    if (!first && late.names(0))  // which cannot say so itself
      fmt::print(stderr, "rank {}: {}\n", world.rank(), late.text);
  };

  std::unique_ptr<Disk> planned;  // checkpoints meet the full disks of a simulation's plan
  if (world.place().world == "sim") planned = make_disk_with_room_of(world.disk(), *disk);
  Training training(job, planned ? *planned : *disk, clock, team, folder.checkpoints(),
                    static_cast<int>(prepared.recipe.train.keep));
  training.add(log);
  if (first) training.add(narrator->progress());
  if (first && s.listener) training.add(*s.listener);
  if (s.kept) {
    if (first) s.kept->set_folder(folder.path);
    training.keep_in(*s.kept);
  }
  if (s.goes_on)
    training.resume_kept();
  else if (opened.resumes && !resume_training(training, *disk, folder, s, prepared, job, first, note))
    note("no usable checkpoint in " + folder.checkpoints() + ": starting from the first step");
  if (first && opened.resumes) try {
      remove_remains(*disk, folder);
    } catch (const DiskError& problem) {
      note(fmt::format("what earlier saves have left is not removed: {}", problem.what()));
    }
  if (first) keep_samples(*disk, folder, prepared.plain);
  log.begin();
  std::optional<TraceListener> trace;
  if (s.trace) training.add(trace.emplace(team, training.engine()));
  std::optional<ControlReader> control;
  if (first) control.emplace(*disk, *real_clock, folder);
  if (first && s.generation > 1) {
    log.on_note(s.change);
    control->journal(
        training.next_step(),
        Json{{"action", "generation"}, {"generation", s.generation}, {"workers", world.size()}, {"because", s.change}});
  }
  training.follow(control ? &*control : nullptr);
  const Json plan = first && job.plan.splits_model() ? predicted_plan(prepared, job.plan) : Json();
  RunCluster cluster(team, *disk, *real_clock, folder, plan, note);
  training.add(cluster);
  if (first) narrator->before(training, job, world, cores);
  const RunSummary summary = run_logged(training, signals ? signals->flag() : never, log, cluster);
  if (summary.stopped_by == "resize") return first ? narrator->hand_over() : void();
  if (trace) trace->write(*disk, folder.trace(), note);
  if (!was_interrupted(summary.stopped_by)) cluster.finish();
  if (first) narrator->after(training, summary, world, cores, !composed, plan, signals ? signals->name() : "");
}

}  // namespace echelon::cli
