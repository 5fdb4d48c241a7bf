#include "run/training/training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "kernels/peak.h"
#include "run/health/agreement.h"
#include "run/health/rank_times.h"
#include "run/training/interrupted.h"
#include "run/training/loop_state.h"
#include "run/weights.h"
#include "track/weights_hash.h"

namespace echelon {

namespace {

// The peak of one core in GFLOP/s. A hundredth of a second of measuring is exact enough for a share in per cent.
double measure_core_peak(Clock& clock) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double start = clock.seconds(), flops = kernels::fma_work(400'000);
    best = std::max(best, flops / (clock.seconds() - start) / 1e9);
  }
  return best;
}

// The folder of a run, for memory in files.
std::string folder_of(const std::string& checkpoints) {
  return checkpoints.empty() ? "/tmp" : std::filesystem::path(checkpoints).parent_path().string();
}

}  // namespace

std::function<void(const ParameterTable&, std::span<float>)> start_of(const TrainingJob& job) {
  if (!job.initial) return {};
  return [initial = job.initial](const ParameterTable& table, std::span<float> parameters) {
    initial->write(table, parameters);
  };
}

Training::Training(const TrainingJob& job, Disk& disk, Clock& clock, Team& team, std::string checkpoints, int keep)
    : job_(job),
      disk_(disk),
      clock_(clock),
      team_(team),
      directory_(std::move(checkpoints)),
      batch_sequence_(job.train->size(), job.batches, job.drop_partial),
      engine_(make_engine(engine_settings(), batch_sequence_.largest_batch(), job.composition.get(), team)),
      loop_(std::make_unique<LoopState>()),
      core_peak_(team.world().place().threads ? measure_core_peak(clock) : 0) {
  flops_per_sample_ = engine_->flops_per_sample();
  if (job.plateau) loop_->plateau = Plateau(*job.plateau);
  if (const data::DatasetPtr& data = job.validation ? job.validation : job.test)
    evaluate_ = evaluation_of(data, engine_->model());
  if (!directory_.empty() && team.world().rank() == 0)
    checkpointer_ = std::make_unique<Checkpointer>(
        disk, clock, team.world().place().threads ? make_background("checkpoints", 1) : make_inline_background(),
        directory_, CheckpointPolicy{.keep_last = keep},
        engine_->model_is_everywhere() ? "" : folder_of_large_memory());
}

Training::~Training() = default;

EngineSettings Training::engine_settings() const {
  return {.model = job_.model,
          .make_optim = job_.make_optim,
          .fields = job_.train->fields(),
          .shards = job_.shards,
          .seed = job_.seed,
          .stragglers = job_.stragglers,
          .byzantine = job_.byzantine,
          .flips = job_.flips,
          .start = start_of(job_),
          .plan = &job_.plan,
          .folder = folder_of(directory_)};
}

double Training::epochs_after(std::int64_t step) const {
  if (step < 0) return 0;
  const data::Cursor c = batch_sequence_.at(static_cast<std::uint64_t>(step));
  return c.epoch + static_cast<double>(c.samples.first + c.samples.count) / static_cast<double>(job_.train->size());
}

bool Training::due(const Duration& every, std::int64_t step) const {
  if (every.amount <= 0) return false;
  const auto before = every.epochs ? epochs_after(step - 1) : static_cast<double>(step);
  const auto after = every.epochs ? epochs_after(step) : static_cast<double>(step + 1);
  return std::floor(after / every.amount + 1e-9) > std::floor(before / every.amount + 1e-9);
}

void Training::tell(const std::function<void(RunListener&)>& what) {
  for (RunListener* l : listeners_) what(*l);
}

std::string Training::folder_of_large_memory() const {
  return job_.plan.offload.empty() ? folder_of(directory_) : job_.plan.offload;
}

bool Training::wants_to_stop(const StopFlag& stop) const {
  return team_.world().size() > 1 ? stop_agreed_ : stop.load(std::memory_order_relaxed);
}

RunSummary Training::run(const StopFlag& stop) {
  data::Loader loader(samples(), loader_options());
  LoopState& loop = *loop_;
  if (was_interrupted(loop.stopped_by) || (loop.stopped_by == "end" && next_ < job_.total_steps))
    loop.stopped_by.clear(), loop.test.reset();  // that is what resuming is for, and a later end
  pace_ = {.begin = clock_.seconds(), .first_step = next_};
  if (save_first_ && loop.stopped_by.empty()) save(Checkpointer::IfBusy::wait);
  if (loop.stopped_by.empty()) keep_copy();
  while (loop.stopped_by.empty()) {
    // Also first of all: whoever was lost may have kept this step, and not done what was to be done after it.
    if (followed_ && (stop_agreed_ || replay_due())) {
      obey(stop);
      if (!loop.stopped_by.empty()) break;
      keep_copy();
    }
    if (loop.evaluation_due && !wants_to_stop(stop)) {
      do_evaluation(stop);
      if (loop.stopped_by.empty()) keep_copy();
    }
    if (!loop.stopped_by.empty()) break;
    if (next_ > pace_.first_step) {
      // The best one is not left out: it is what `best` means afterwards.
      if (job_.checkpoint_every.amount > 0 && loop.best && loop.best_step == next_)
        save(Checkpointer::IfBusy::wait);
      else if (due(job_.checkpoint_every, next_ - 1))
        save(Checkpointer::IfBusy::skip);
    }
    if (wants_to_stop(stop)) {
      loop.stopped_by = "signal";
    } else if (next_ == job_.total_steps) {
      loop.stopped_by = "end";
    } else {
      run_steps(loader, stop);
      if (check_) expect_replicas_agree();
    }
  }
  if (loop.stopped_by == "resize") return hand_over();
  if (evaluate_ && !last_evaluation_ && !was_interrupted(loop.stopped_by))
    last_evaluation_ = evaluate_({});  // resumed when all was done
  if (job_.validation && job_.test && !was_interrupted(loop.stopped_by)) {
    if (loop.test)
      load_best();  // it was tested before
    else
      evaluate_test();
  }
  save(Checkpointer::IfBusy::wait);
  std::vector<SaveResult> saves;
  if (checkpointer_) report_saves(saves = checkpointer_->finish());
  RunSummary summary = summarise(loader.seconds_waited());
  if (!saves.empty() && !saves.back().saved) summary.not_saved = saves.back().warning;
  engine_->close();
  return summary;
}

// Others go on from the state that was kept.
RunSummary Training::hand_over() {
  if (checkpointer_) report_saves(checkpointer_->finish());
  const auto steps = static_cast<double>(next_ - pace_.first_step);
  if (team_.world().rank() == 0) keeper_->set_pace(steps > 0 ? pace_.training_seconds / steps : 0);
  engine_->close();
  return {.steps = next_, .stopped_by = loop_->stopped_by};
}

RunSummary Training::summarise(double waited_for_input) {
  const LoopState& loop = *loop_;
  RunSummary s{
      .steps = next_,
      .epochs = epochs_after(next_ - 1),
      .train_loss = loop.epoch.terms > 0 ? loop.epoch.loss / loop.epoch.terms : 0,
      .validation = job_.validation ? last_evaluation_ : std::nullopt,
      .test = job_.validation ? loop.test : last_evaluation_,
      .tested_step = job_.validation ? loop.tested_step : next_,
      .seconds = clock_.seconds() - pace_.begin,
      .weights_sha256 = engine_->model().empty() ? "" : weights_hash(weight_views(engine_->table(), engine_->model())),
      .stopped_by = loop.stopped_by};
  if (loop.best && last_evaluation_) {
    s.best_step = loop.best_step;
    s.best = higher_is_better(job_.monitor, *last_evaluation_) ? loop.best->value : -loop.best->value;
    s.monitor = (job_.validation ? "val_" : "test_") + monitored(job_.monitor, *last_evaluation_).first;
  }
  if (job_.model->task() == models::Task::classify && loop.epoch.terms > 0)
    s.train_accuracy = loop.epoch.correct / loop.epoch.terms;
  if (pace_.training_seconds > 0) {
    s.samples_per_s = static_cast<double>(pace_.samples) / pace_.training_seconds;
    s.waited_for_input = waited_for_input / pace_.training_seconds;
    s.peak_share = peak_share(s.samples_per_s);
  }
  s.system = engine_->figures();
  s.working = engine_->working_ranks();
  s.bytes = engine_->bytes_sent();
  s.ranks = gather_rank_times(team_, engine_->times(), waited_for_input);
  expect_agreement();
  return s;
}

void Training::expect_agreement() { expect_same_weights(team_, engine_->held_weights(), next_); }

double Training::peak_share(double samples_per_s) const {
  const double cores = team_.cores().count() * team_.world().size();
  return core_peak_ > 0 ? samples_per_s * flops_per_sample_ / 1e9 / (core_peak_ * cores) : 0;
}

}  // namespace echelon
