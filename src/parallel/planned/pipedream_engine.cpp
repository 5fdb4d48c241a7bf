#include "parallel/planned/pipedream_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collective/shard_sum.h"
#include "parallel/step/not_finite.h"

namespace echelon {

PipeDreamEngine::PipeDreamEngine(const EngineSettings& settings, Team& team)
    : PlannedEngine(settings, team),
      stage_(*stages_.front()),
      staleness_(settings.plan->staleness(stage_.stage())),
      steps_(static_cast<std::size_t>(layout_.stages() - stage_.stage())),
      control_(team.group(), layout_.stages()) {
  for (UnderWay& s : steps_) s.shard_samples.resize(static_cast<std::size_t>(layout_.shards()));
}

Reached PipeDreamEngine::run(const StepRange& range) {
  const double began = world_.now();
  const auto sent_before = world_.sent();
  const double sent_so_far = sent_;
  waits_.begin();
  updates_ = 0;
  stop_ = false;
  std::int64_t to = range.to, forward = range.from, backward = range.from;
  for (; backward < to; ++backward) {
    for (; forward < to && forward < backward + static_cast<std::int64_t>(steps_.size()); ++forward) {
      const bool go = forward == range.from || !(stop_ = stop_ || range.asks_to_stop());
      if (!control_.begins(forward, go)) {
        to = forward;
        break;
      }
      run_forward(range, forward);
    }
    if (backward == to) break;
    run_backward(range, backward);
    update_stage(range, backward);
    if (sent_before) sent_ = sent_so_far + static_cast<double>(world_.sent()->bytes - sent_before->bytes);
    report(range, backward);
  }
  messages_->drain();
  control_.drain();
  RankTimes all{.waiting_for = std::move(times_.waiting_for)};
  waits_.end(world_.now() - began, all);
  times_.compute += all.exchange;  // what was no wait
  times_.waiting_for = std::move(all.waiting_for);
  return {to, to < range.to};
}

void PipeDreamEngine::run_forward(const StepRange& range, std::int64_t step) {
  const double asked = world_.now();
  batch_ = &range.loader->at(static_cast<std::uint64_t>(step));
  if (range.on_span && world_.now() - asked > 1e-4) range.on_span({"wait for input", asked, world_.now()});
  prepare(*batch_);
  UnderWay& s = under_way(step);
  s.samples = static_cast<std::int64_t>(batch_->samples());
  for (std::size_t i = 0; i < s.shard_samples.size(); ++i)
    s.shard_samples[i] = static_cast<std::int64_t>(batch_->samples_of(i).count);
  s.slowness = slowness(settings_.stragglers, world_.rank(), world_.size(), step, settings_.seed);
  run_passes(Pass::forward, range, step, *batch_);
  loss_ = {};
  for (const ShardLoss& l : losses_) loss_.loss += l.loss, loss_.correct += l.correct;
}

void PipeDreamEngine::run_backward(const StepRange& range, std::int64_t step) {
  stage_.start_step();
  run_passes(Pass::backward, range, step, *batch_);
}

// All micro-batches of a step that this rank has, on the weights that the step began with here.
void PipeDreamEngine::run_passes(Pass pass, const StepRange& range, std::int64_t step, const data::Batch& batch) {
  const UnderWay& s = under_way(step);
  const std::int64_t version = std::max<std::int64_t>(0, step - range.from - staleness_);
  const ShardRange& own = stage_.shards();
  StepContext context{
      .seed = settings_.seed, .step = static_cast<std::uint32_t>(step), .communicator = messages_.get()};
  context.loss_scale = static_cast<float>(1.0 / (static_cast<double>(s.samples) * static_cast<double>(loss_terms_)));
  for (int shard = own.first; shard < own.last; ++shard) {
    const std::int64_t samples = s.shard_samples[static_cast<std::size_t>(shard)];
    context.shard = static_cast<std::uint32_t>(shard);
    context.share = static_cast<float>(static_cast<double>(samples) / static_cast<double>(s.samples));
    const auto number = static_cast<int>(step - range.from) * own.count() + shard - own.first;
    run_task({pass, stage_.stage(), number}, samples, batch, context, s.slowness, version == updates_ ? -1 : version);
  }
}

void PipeDreamEngine::update_stage(const StepRange& range, std::int64_t step) {
  const double began = world_.now();
  sum_over_ranks();
  stage_.save_version(updates_);
  Update& update = stage_.update();
  update.begin({.number = step + 1, .lr = range.lr(step), .grad_scale = 1});
  for (int phase = 0; phase < update.phases(); ++phase) {
    update.run(phase, update.all());
    update.fold(phase);
  }
  ++updates_;
  watch_.span({"update", began, world_.now()});
}

// The last stage knows the loss of a step that it has just done; the first one is the last to have done it.
void PipeDreamEngine::report(const StepRange& range, std::int64_t step) {
  const bool knows = stage_.stage() == layout_.stages() - 1 && stage_.part() == 0;
  const StageReport all = control_.report(step, {.loss = knows ? loss_.loss : 0,
                                                 .correct = knows ? loss_.correct : 0,
                                                 .asks_to_stop = range.asks_to_stop() ? 1 : 0});
  if (world_.rank() != 0) return;
  stop_ = stop_ || all.asks_to_stop != 0;
  if (!std::isfinite(all.loss))
    throw NotFinite(
        fmt::format("step {}: the loss is not a number. Try a smaller optim.lr or a warm-up (schedule.warmup_steps): "
                    "gradients of older weights bear less than exact training",
                    step));
  const std::int64_t samples = under_way(step).samples;
  StepResult result{.correct = all.correct,
                    .samples = samples,
                    .terms = samples * loss_terms_,
                    .gradient_norm = stage_.update().gradient_norm()};
  if (samples > 0) result.loss = all.loss / static_cast<double>(result.terms);
  range.on_progress({step + 1, result, world_.sent() ? sent_ * world_.size() : -1});
}

}  // namespace echelon
