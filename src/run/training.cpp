#include "run/training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "kernels/peak.h"
#include "run/agreement.h"
#include "run/first_evaluator.h"
#include "run/interrupted.h"
#include "run/rank_times.h"
#include "run/training_memory.h"
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

std::string memory_folder(const PlanSpec& plan, const std::string& checkpoints) {
  return plan.offload.empty() ? folder_of(checkpoints) : plan.offload;
}

// With its rules of layers: what decides which rank has what.
std::string plan_text(const PlanSpec& plan) {
  std::string text = to_string(plan);
  for (const LayerRule& rule : plan.layers) text += "; " + to_string(rule);
  return text;
}

std::int64_t evaluation_batch_of(const data::Dataset& data) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(data.size(), evaluation_batch));
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
      engine_(make_engine({.model = job.model,
                           .make_optim = job.make_optim,
                           .fields = job.train->fields(),
                           .shards = job.shards,
                           .seed = job.seed,
                           .stragglers = job.stragglers,
                           .start = start_of(job),
                           .plan = &job.plan,
                           .folder = folder_of(directory_)},
                          batch_sequence_.largest_batch(), job.composition.get(), team)),
      memory_(std::make_unique<Memory>()),
      core_peak_(team.world().place().threads ? measure_core_peak(clock) : 0) {
  flops_per_sample_ = engine_->flops_per_sample();
  if (job.plateau) memory_->plateau = Plateau(*job.plateau);
  if (const data::DatasetPtr& data = job.validation ? job.validation : job.test)
    evaluate_ = evaluation_of(data, engine_->model());
  if (!directory_.empty() && team.world().rank() == 0)
    checkpointer_ = std::make_unique<Checkpointer>(
        disk, clock, team.world().place().threads ? make_background("checkpoints", 1) : make_inline_background(),
        directory_, CheckpointPolicy{.keep_last = keep},
        engine_->model_is_everywhere() ? "" : memory_folder(job.plan, directory_));
}

Training::~Training() = default;

Training::Evaluate Training::evaluation_of(const data::DatasetPtr& data, std::span<float> weights) const {
  const std::int64_t batch = evaluation_batch_of(*data);
  if (!engine_->model_is_everywhere())
    return [e = std::make_shared<FirstEvaluator>(*job_.model, engine_->table(), weights, data, batch, team_,
                                                 job_.metrics)](const auto&) { return e->run(); };
  return [e = std::make_shared<Evaluator>(*job_.model, engine_->table(), weights, data, batch, team_, job_.metrics)](
             const std::function<bool()>& keep_going) { return e->run({}, keep_going); };
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

// Rank 0 loads; the others get the tensors and what else a checkpoint remembers from it.
bool Training::resume(AllDamaged if_so) {
  struct Found {  // what rank 0 has found
    std::int64_t found = 0, step = 0, memory_bytes = 0;
  } head;
  std::string memory;
  if (team_.world().rank() == 0) {
    CheckpointSearch search = latest_valid(disk_, directory_);
    for (const std::string& problem : search.skipped)
      tell([&](RunListener& l) { l.on_note("skipped a checkpoint: " + problem); });
    if (!search.found && !search.skipped.empty() && if_so == AllDamaged::refuse)
      throw AllCheckpointsDamaged(fmt::format("no checkpoint in {} can be used", directory_));
    if (search.found) {
      load(*search.found);
      memory = memory_->to_json().dump();
      head = {1, next_, static_cast<std::int64_t>(memory.size())};
    }
  }
  team_.broadcast(std::as_writable_bytes(std::span(&head, 1)));
  if (head.found == 0) return false;
  memory.resize(static_cast<std::size_t>(head.memory_bytes));
  team_.broadcast(std::as_writable_bytes(std::span(memory)));
  memory_->read(Json::parse(memory));
  next_ = last_saved_ = head.step;
  engine_->scatter();
  return true;
}

void Training::load(Checkpoint& checkpoint) {
  const TrainingPosition& m = checkpoint.manifest.position;
  expect_same_training(m, position(), checkpoint.path);
  if (m.step > job_.total_steps)
    bad_input("{} is at step {}, but the recipe ends at step {}", checkpoint.path, m.step, job_.total_steps);
  load_weights(checkpoint.weights, engine_->table(), engine_->model());
  load_state(checkpoint.state, engine_->state());
  memory_->read(m.extra);
  next_ = m.step;
  last_saved_ = m.step;
}

bool keeps_each_step(const TrainingJob& job, int workers) {
  const bool replicas = job.composition && workers > 1;
  return !replicas && !job.plan.splits_model();
}

void Training::keep_in(KeptState& kept) {
  keeper_ = std::make_unique<StateKeeper>(kept, *engine_, team_.world(), keeps_each_step(job_, team_.world().size()));
}

void Training::keep_step() {
  const Memory& m = *memory_;
  keeper_->keep({.step = next_,
                 .epoch_sums = {m.epoch_loss, m.epoch_correct, m.epoch_terms},
                 .evaluation_due = evaluation_follows(next_)},
                memory_text_);
}

void Training::keep() {
  const Memory& m = *memory_;
  memory_text_ = m.to_json().dump();
  keeper_->keep(
      {.step = next_, .epoch_sums = {m.epoch_loss, m.epoch_correct, m.epoch_terms}, .evaluation_due = m.evaluation_due},
      memory_text_);
}

void Training::resume_kept() {
  const KeptState::Position position = keeper_->load(memory_text_);
  Memory& m = *memory_;
  m.read(Json::parse(memory_text_));
  m.epoch_loss = position.epoch_sums[0], m.epoch_correct = position.epoch_sums[1],
  m.epoch_terms = position.epoch_sums[2];
  m.evaluation_due = position.evaluation_due;
  next_ = position.step;
}

void Training::tell(const std::function<void(RunListener&)>& what) {
  for (RunListener* l : listeners_) what(*l);
}

void Training::report_saves(const std::vector<SaveResult>& results) {
  for (const SaveResult& r : results) {
    tell([&](RunListener& l) { l.on_save(r); });
    if (!r.warning.empty() && !r.skipped)
      tell([&](RunListener& l) {
        l.on_note(fmt::format("the checkpoint of step {} {}: {}; training goes on", r.step,
                              r.saved ? "was saved, but" : "was not saved", r.warning));
      });
  }
}

TrainingPosition Training::position() const {
  const data::Cursor c = batch_sequence_.at(static_cast<std::uint64_t>(next_));
  const bool measured = memory_->best && memory_->best_step == next_;
  const std::optional<int> workers = job_.composition ? std::optional(team_.world().size()) : std::nullopt;
  return {.step = next_,
          .epoch = c.epoch,
          .cursor = static_cast<std::int64_t>(c.samples.first),
          .seed = job_.seed,
          .model = job_.model_fingerprint,
          .data = job_.data_fingerprint,
          .recipe = job_.recipe_fingerprint,
          .workers = workers,
          .plan = workers && job_.plan.splits_model() ? plan_text(job_.plan) : "",
          .score = measured ? std::optional(memory_->best->value) : std::nullopt,
          .loss = measured ? std::optional(memory_->best->loss) : std::nullopt,
          .extra = memory_->to_json()};
}

void Training::save(Checkpointer::IfBusy if_busy) {
  // A finished run is saved once more even if its last step was: the reason why it ended belongs to it.
  if (directory_.empty() || (last_saved_ == next_ && memory_->stopped_by.empty())) return;
  expect_agreement();
  engine_->gather();
  if (checkpointer_) {
    const auto weights = weight_views(engine_->table(), engine_->model());
    const auto views = state_views(engine_->state());
    checkpointer_->save(position(), weights, views, if_busy,
                        before_save_ ? before_save_() : std::shared_future<void>());
  }
  engine_->end_gather();
  last_saved_ = next_;
}

bool Training::wants_to_stop(const StopFlag& stop) const {
  return team_.world().size() > 1 ? stop_agreed_ : stop.load(std::memory_order_relaxed);
}

void Training::do_evaluation(const StopFlag& stop) {
  const double started = clock_.seconds();
  std::function<bool()> keep_going;  // several ranks finish what they have begun together
  if (team_.world().size() == 1) keep_going = [&] { return !wants_to_stop(stop); };
  Evaluation result = evaluate_(keep_going);
  tell([&](RunListener& l) { l.on_span({"evaluate", started, clock_.seconds()}); });
  if (keep_going && !keep_going()) return;  // cut short: it stays due, also after resuming
  add_own_metrics(result, engine_->model(), job_.validation ? job_.validation : job_.test);
  Memory& m = *memory_;
  m.evaluation_due = false;
  last_evaluation_ = result;
  const Score score = score_of(job_.monitor, result);
  const bool best = !m.best || score.better_than(*m.best);
  // Patience is for the metric alone: a loss that creeps on at the same accuracy does not keep a run alive.
  m.evaluations_since_best = !m.best || score.value > m.best->value ? 0 : m.evaluations_since_best + 1;
  if (best) m.best = score, m.best_step = next_;
  if (job_.plateau && m.plateau.evaluated(score.value))
    tell([&](RunListener& l) {
      l.on_note(fmt::format("{} evaluations without a better one: the learning rate drops to {:g}",
                            job_.plateau->patience + 1, rate(next_)));
    });
  tell([&](RunListener& l) {
    l.on_evaluation({.step = next_,
                     .epoch = epochs_after(next_ - 1),
                     .part = job_.validation ? "val" : "test",
                     .result = result,
                     .best = best});
  });
  if ((job_.target_accuracy && result.accuracy >= *job_.target_accuracy) ||
      (job_.target_loss && result.loss <= *job_.target_loss))
    m.stopped_by = "target";
  else if (job_.patience > 0 && m.evaluations_since_best >= job_.patience)
    m.stopped_by = "patience";
}

// The best weights into `tested_`, if they are not the last ones and can be had.
void Training::load_best() {
  std::int64_t found = 0;
  if (!directory_.empty() && memory_->best_step != next_) {
    const std::size_t bytes = engine_->table().floats() * sizeof(float);
    if (engine_->model_is_everywhere())
      tested_ = (tested_memory_ = Buffer(bytes)).as<float>();
    else if (team_.world().rank() == 0)
      tested_ = (tested_file_ = FileMemory(memory_folder(job_.plan, directory_), bytes)).as<float>();
    if (checkpointer_) report_saves(checkpointer_->finish());
    if (team_.world().rank() == 0) {
      CheckpointSearch search = best_valid(disk_, directory_);
      if (search.found && search.found->manifest.position.step == memory_->best_step) {
        load_weights(search.found->weights, engine_->table(), tested_);
        found = 1;
      }
    }
    team_.broadcast(std::as_writable_bytes(std::span(&found, 1)));
    if (found == 1 && engine_->model_is_everywhere()) team_.broadcast(std::as_writable_bytes(tested_));
  }
  memory_->tested_step = found == 1 ? memory_->best_step : next_;
  if (found == 0) tested_ = {};
}

void Training::add_own_metrics(Evaluation& evaluation, std::span<float> weights, const data::DatasetPtr& data) {
  if (!job_.own_metrics || team_.world().rank() != 0) return;
  for (auto& value : job_.own_metrics(
           {.model = *job_.model, .table = engine_->table(), .weights = weights, .data = data, .cores = team_.cores()}))
    evaluation.metrics.push_back(std::move(value));
}

// The one look at the test part.
void Training::evaluate_test() {
  load_best();
  memory_->test = evaluation_of(job_.test, tested_weights())({});
  add_own_metrics(*memory_->test, tested_weights(), job_.test);
  tell([&](RunListener& l) {
    l.on_evaluation({.step = next_,
                     .epoch = epochs_after(next_ - 1),
                     .part = "test",
                     .result = *memory_->test,
                     .tested_step = memory_->tested_step});
  });
}

RunSummary Training::run(const StopFlag& stop) {
  data::Loader loader(job_.train, loader_options());
  Memory& m = *memory_;
  if (was_interrupted(m.stopped_by) || (m.stopped_by == "end" && next_ < job_.total_steps))
    m.stopped_by.clear(), m.test.reset();  // that is what resuming is for, and a later end
  pace_ = {.begin = clock_.seconds(), .first_step = next_};
  if (keeper_ && m.stopped_by.empty()) keep();
  while (m.stopped_by.empty()) {
    if (m.evaluation_due && !wants_to_stop(stop)) {
      do_evaluation(stop);
      if (keeper_ && m.stopped_by.empty()) keep();
    }
    if (!m.stopped_by.empty()) break;
    if (next_ > pace_.first_step) {
      // The best one is not left out: it is what `best` means afterwards.
      if (job_.checkpoint_every.amount > 0 && m.best && m.best_step == next_)
        save(Checkpointer::IfBusy::wait);
      else if (due(job_.checkpoint_every, next_ - 1))
        save(Checkpointer::IfBusy::skip);
    }
    if (wants_to_stop(stop)) {
      m.stopped_by = "signal";
    } else if (next_ == job_.total_steps) {
      m.stopped_by = "end";
    } else {
      run_steps(loader, stop);
      if (followed_ && stop_agreed_) {
        obey(stop);
        if (keeper_ && m.stopped_by.empty()) keep();
      }
    }
  }
  if (m.stopped_by == "resize") return hand_over();
  if (evaluate_ && !last_evaluation_ && !was_interrupted(m.stopped_by))
    last_evaluation_ = evaluate_({});  // resumed when all was done
  if (job_.validation && job_.test && !was_interrupted(m.stopped_by)) {
    if (m.test)
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
  engine_->close();
  return {.steps = next_, .stopped_by = memory_->stopped_by};
}

RunSummary Training::summarise(double waited_for_input) {
  const Memory& m = *memory_;
  RunSummary s{
      .steps = next_,
      .epochs = epochs_after(next_ - 1),
      .train_loss = m.epoch_terms > 0 ? m.epoch_loss / m.epoch_terms : 0,
      .validation = job_.validation ? last_evaluation_ : std::nullopt,
      .test = job_.validation ? m.test : last_evaluation_,
      .tested_step = job_.validation ? m.tested_step : next_,
      .seconds = clock_.seconds() - pace_.begin,
      .weights_sha256 = engine_->model().empty() ? "" : weights_hash(weight_views(engine_->table(), engine_->model())),
      .stopped_by = m.stopped_by};
  if (m.best && last_evaluation_) {
    s.best_step = m.best_step;
    s.best = higher_is_better(job_.monitor, *last_evaluation_) ? m.best->value : -m.best->value;
    s.monitor = (job_.validation ? "val_" : "test_") + monitored(job_.monitor, *last_evaluation_).first;
  }
  if (job_.model->task() == models::Task::classify && m.epoch_terms > 0)
    s.train_accuracy = m.epoch_correct / m.epoch_terms;
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

void Training::expect_agreement() {
  if (engine_->model_is_everywhere()) expect_same_weights(team_, engine_->model(), next_);
}

double Training::peak_share(double samples_per_s) const {
  const double cores = team_.cores().count() * team_.world().size();
  return core_peak_ > 0 ? samples_per_s * flops_per_sample_ / 1e9 / (core_peak_ * cores) : 0;
}

}  // namespace echelon
