#include "cli/training/train_rank.h"

#include <atomic>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_cluster.h"
#include "cli/runs/run_samples.h"
#include "cli/training/log_listener.h"
#include "cli/training/predicted_plan.h"
#include "cli/training/ring_listener.h"
#include "cli/training/run_reporter.h"
#include "cli/training/step_sampler.h"
#include "cli/training/trace_listener.h"
#include "cli/training/train_folder.h"
#include "run/health/diagnosis.h"
#include "run/job.h"
#include "run/memory_limit.h"
#include "run/run_plan.h"
#include "run/training/initial_weights.h"
#include "run/training/interrupted.h"
#include "track/control.h"
#include "track/run.h"
#include "world/os/folder_disk.h"
#include "world/os/signals.h"
#include "world/sim/disk_with_room_of.h"
#include "world/wrappers/metered.h"
#include "world/wrappers/recorder.h"

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
  if (!replay.empty()) text += " --replay " + shell_quoted(replay);
  if (keep != Keep::usual)
    text += keep == Keep::buddy ? " --keep buddy" : keep == Keep::replay ? " --keep replay" : " --keep checkpoint";
  if (max_restarts >= 0) text += fmt::format(" --max-restarts {}", max_restarts);
  if (!stages.empty()) text += " --stages " + shell_quoted(stages);
  if (check_replicas > 0) text += fmt::format(" --check-replicas {}", check_replicas);
  if (elastic != Elastic::no) text += elastic == Elastic::shrink ? " --elastic=shrink" : " --elastic";
  return text;
}

namespace {

RunSummary run_logged(Training& training, const std::atomic<bool>& stop, LogListener& log, RunCluster& cluster,
                      EventRing& ring) {
  try {
    const RunSummary summary = training.run(stop);
    log.write("end", fmt::format("stopped by {} after step {}", summary.stopped_by, summary.steps));
    ring.end(summary.stopped_by);
    return summary;
  } catch (const std::exception& problem) {
    log.write("error", problem.what());
    ring.end(problem.what());
    cluster.add_failure(problem);
    throw;
  }
}

std::string text_of_first(Team& team, std::string text) {
  std::uint64_t length = text.size();
  team.broadcast(std::as_writable_bytes(std::span(&length, 1)));
  text.resize(length);
  team.broadcast(std::as_writable_bytes(std::span(text)));
  return text;
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

// The weights of the kept state, which rank 0 has, for a training that begins with them.
std::shared_ptr<const InitialWeights> kept_weights(Team& team, const TrainSettings& s, const models::Model& model) {
  std::vector<float> weights(floats_of(model));
  if (team.world().rank() == 0) s.kept->read_end(std::as_writable_bytes(std::span(weights)));
  team.broadcast(std::as_writable_bytes(std::span(weights)));
  return initial_weights_of(model, weights);
}

// A world that counts by itself goes on when its ring is gone.
struct RecordingEnds {
  explicit RecordingEnds(World& w) : world(w) {}
  ~RecordingEnds() { record_events(world, nullptr); }
  RecordingEnds(const RecordingEnds&) = delete;
  World& world;
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
  job.plan = check_run_plan(prepared, job.plan, world.size(), cores_asked(s.world), problems);
  if (problems.empty() && !s.memory.empty() && known_workers(s.world) == 0)
    check_memory_limit(prepared, job.plan, world.size(), read_memory_size(s.memory, "--memory"), problems);
  problems.throw_if_any(s.recipe);
  Cores cores(job.plan.splits_model() ? 1 : cores_each(s.world, world));
  const bool composed = trains_replicas(job.composition.get(), world.size());
  std::optional<EventRing> ring;  // outlives everything that records in it
  const RecordingEnds end_of_recording(world);
  const auto meter =
      (world.size() > 1 || composed) && !world.sent() ? make_metered(world) : nullptr;  // unless it counts already
  const bool checks = s.check_replicas > 0 && world.size() > 1;
  Team team(meter ? *meter : world, cores, composed || checks || job.plan.splits_model());
  if (s.trace) team.keep_waits();
  const bool first = world.rank() == 0;
  // A launcher that keeps the state ends a worker that stands still, so that it is replaced: sooner than the others
  // give up.
  const double limit = s.world.stopped_after + (s.kept ? 30 : 0);
  team.timeout = limit;
  if (world.size() > 1) {
    WaitOptions waits = team.group().wait_policy().options();
    waits.limit = limit;
    team.group().wait_policy().set_options(std::move(waits));
  }

  // Whatever could be refused has been refused: from here on there is a run folder.
  const TrainFolder opened = agree_on_folder(team, *outer_disk, s, prepared);  // rank 0 holds its lock until the end
  const RunFolder& folder = opened.folder;
  const auto disk = make_folder_disk(folder.path);

  LogListener log(*disk, *real_clock, folder, world.rank());
  log.write("start", s.command());
  std::optional<RunReporter> reporter;
  if (first) reporter.emplace(s, prepared, *disk, *real_clock, opened, log, world.place().world == "mpi");
  auto note = [&](const std::string& text) { first ? reporter->note(text) : log.on_note(text); };
  team.on_late = [&](const WaitNotice& late) {
    note(late.text);
    if (!first && late.names(0))  // which cannot say so itself
      fmt::print(stderr, "rank {}: {}\n", world.rank(), late.text);
  };

  std::unique_ptr<Disk> planned;  // checkpoints meet the full disks of a simulation's plan
  if (world.place().world == "sim") planned = make_disk_with_room_of(world.disk(), *disk);
  job.flips = s.flips;
  if (s.goes_on && s.weights_only) job.initial = kept_weights(team, s, *job.model);
  Training training(job, planned ? *planned : *disk, clock, team, folder.checkpoints(),
                    static_cast<int>(prepared.recipe.train.keep));
  training.add(log);
  if (first) training.add(reporter->progress());
  if (first && s.listener) training.add(*s.listener);
  if (s.kept) {
    if (world.rank() == s.keeping.first) s.kept->set_folder(folder.path);
    training.keep_in(*s.kept, s.keeping, s.keep);
    // A machine that has just come has not seen what the others did not agree on.
    if (checks)
      training.check_replicas({.every = s.check_replicas, .flips = s.flips, .doubt = text_of_first(team, s.doubt)});
  }
  if (first && s.goes_on) take_recipe(*disk, folder, prepared, note);
  if (s.goes_on)
    s.weights_only ? training.resume_kept_position() : training.resume_kept();
  else if (opened.resumes && !resume_training(training, *disk, folder, s, prepared, job, first, note))
    note("no usable checkpoint in " + folder.checkpoints() + ": starting from the first step");
  if (first && opened.resumes) try {
      remove_remains(*disk, folder);
    } catch (const DiskError& problem) {
      note(fmt::format("what earlier saves have left is not removed: {}", problem.what()));
    }
  if (first) keep_samples(*disk, folder, prepared.plain);
  log.begin();
  ring.emplace(world.place().world == "sim" ? "" : ring_path(folder.path, world.rank()), world.rank(), world.size());
  record_events(team.world(), &*ring);
  RingListener recorder(*ring, training.engine());
  training.add(recorder);
  std::optional<TraceListener> trace;
  if (s.trace) training.add(trace.emplace(team, training.engine()));
  const bool at_its_own_pace = composed || job.plan.has_own_result();  // then steps are nothing that could be timed
  std::optional<StepSampler> sampler;
  if (!at_its_own_pace)
    training.add(sampler.emplace(team, training.engine(), !s.trace && world.place().world != "sim"));
  std::optional<ControlReader> control;
  if (first) control.emplace(*disk, *real_clock, folder);
  if (first && s.generation > 1) {
    log.on_note(s.change);
    Json begun{
        {"action", "generation"}, {"generation", s.generation}, {"workers", world.size()}, {"because", s.change}};
    if (s.chosen) begun["servers"] = s.servers;
    control->journal(training.next_step(), std::move(begun));
  }
  training.follow(control ? &*control : nullptr);
  training.replay(s.replayed);
  const Json plan = first && job.plan.splits_model() ? predicted_plan(prepared, job.plan) : Json();
  RunCluster cluster(team, *disk, *real_clock, folder, plan, note);
  training.add(cluster);
  if (const std::string& where = world.place().world;
      !at_its_own_pace && world.size() > 1 && (where == "mpi" || where == "tcp")) {
    const LinkCosts links = link_costs(team.group());
    if (first)
      reporter->expect(
          predict_on_network(prepared, job.plan, s.world, cluster.hosts(), links, world.shared_memory() != nullptr));
  }
  if (first) reporter->begin(training, job, world, cores);
  const RunSummary summary = run_logged(training, signals ? signals->flag() : never, log, cluster, *ring);
  if (summary.stopped_by == "resize") return first ? reporter->hand_over() : void();
  if (trace) trace->write(*disk, folder.trace(), note);
  SampledSteps sampled;
  if (sampler) sampled = {sampler->step_seconds(), sampler->gather_operations()};
  if (!was_interrupted(summary.stopped_by)) cluster.finish();
  if (first) keep_host_pairs(cluster.host_pairs());
  if (first) reporter->end(training, summary, world, cores, !composed, plan, sampled, signals ? signals->name() : "");
}

}  // namespace echelon::cli
