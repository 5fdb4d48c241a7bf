// Evaluations of a training: while it goes on, and the one look at the test part when it is done.

#include <algorithm>

#include "run/health/diagnosis.h"
#include "run/training/first_evaluator.h"
#include "run/training/loop_state.h"
#include "run/weights.h"

namespace echelon {

namespace {

std::int64_t evaluation_batch_of(const data::Dataset& data) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(data.size(), evaluation_batch));
}

}  // namespace

Training::Evaluate Training::evaluation_of(const data::DatasetPtr& data, std::span<float> weights) const {
  const std::int64_t batch = evaluation_batch_of(*data);
  if (!engine_->model_is_everywhere())
    return [e = std::make_shared<FirstEvaluator>(*job_.model, engine_->table(), weights, data, batch, team_,
                                                 job_.metrics)](const auto&) { return e->run(); };
  return [e = std::make_shared<Evaluator>(*job_.model, engine_->table(), weights, data, batch, team_, job_.metrics)](
             const std::function<bool()>& keep_going) { return e->run({}, keep_going); };
}

void Training::do_evaluation(const StopFlag& stop) {
  const double started = clock_.seconds();
  team_.world().set_status(calm_activities[0]);
  std::function<bool()> keep_going;  // several ranks finish what they have begun together
  if (team_.world().size() == 1) keep_going = [&] { return !wants_to_stop(stop); };
  Evaluation result = evaluate_(keep_going);
  tell([&](RunListener& l) { l.on_span({"evaluate", started, clock_.seconds()}); });
  if (keep_going && !keep_going()) return;  // cut short: it stays due, also after resuming
  add_own_metrics(result, engine_->model(), job_.validation ? job_.validation : job_.test);
  LoopState& loop = *loop_;
  loop.evaluation_due = false;
  last_evaluation_ = result;
  const Score score = score_of(job_.monitor, result);
  const bool best = !loop.best || score.better_than(*loop.best);
  // Patience is for the metric alone: a loss that creeps on at the same accuracy does not keep a run alive.
  loop.evaluations_since_best = !loop.best || score.value > loop.best->value ? 0 : loop.evaluations_since_best + 1;
  if (best) loop.best = score, loop.best_step = next_;
  if (job_.plateau && loop.plateau.evaluated(score.value))
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
    loop.stopped_by = "target";
  else if (job_.patience > 0 && loop.evaluations_since_best >= job_.patience)
    loop.stopped_by = "patience";
}

// The best weights into `tested_`, if they are not the last ones and can be had.
void Training::load_best() {
  std::int64_t found = 0;
  if (!directory_.empty() && loop_->best_step != next_) {
    const std::size_t bytes = engine_->table().floats() * sizeof(float);
    if (engine_->model_is_everywhere())
      tested_ = (tested_memory_ = Buffer(bytes)).as<float>();
    else if (team_.world().rank() == 0)
      tested_ = (tested_file_ = FileMemory(folder_of_large_memory(), bytes)).as<float>();
    if (checkpointer_) report_saves(checkpointer_->finish());
    if (team_.world().rank() == 0) {
      CheckpointSearch search = best_valid(disk_, directory_);
      if (search.found && search.found->manifest.position.step == loop_->best_step) {
        load_weights(search.found->weights, engine_->table(), tested_);
        found = 1;
      }
    }
    team_.broadcast(std::as_writable_bytes(std::span(&found, 1)));
    if (found == 1 && engine_->model_is_everywhere()) team_.broadcast(std::as_writable_bytes(tested_));
  }
  loop_->tested_step = found == 1 ? loop_->best_step : next_;
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
  loop_->test = evaluation_of(job_.test, tested_weights())({});
  add_own_metrics(*loop_->test, tested_weights(), job_.test);
  tell([&](RunListener& l) {
    l.on_evaluation({.step = next_,
                     .epoch = epochs_after(next_ - 1),
                     .part = "test",
                     .result = *loop_->test,
                     .tested_step = loop_->tested_step});
  });
}

}  // namespace echelon
