// Steps of a training, one by one for all ranks together, or in rounds of replicas that meet when something is due.

#include <algorithm>
#include <cmath>
#include <limits>

#include "run/training_progress.h"

namespace echelon {

void Training::do_step(data::Loader& loader, const StopFlag& stop) {
  const std::int64_t step = next_;
  const double started = clock_.seconds();
  const data::Batch& batch = loader.at(static_cast<std::uint64_t>(step));
  const double loaded = clock_.seconds();
  const double lr = job_.schedule.lr(step);
  if (batch.cursor().batch == 0) progress_->epoch_loss = progress_->epoch_correct = progress_->epoch_terms = 0;
  trainer_->slow_down(slowness(job_.stragglers, team_.world().rank(), team_.world().size(), step, job_.seed));
  const std::uint64_t sent_before = meter_ ? meter_->sent().bytes : 0;
  const StepResult result =
      trainer_->step(static_cast<std::uint64_t>(step), lr, batch, stop.load(std::memory_order_relaxed));
  if (meter_) sent_ += static_cast<double>(meter_->sent().bytes - sent_before);
  stop_agreed_ = result.stop;
  const double ended = clock_.seconds();
  tell([&](RunListener& l) {
    if (loaded - started > 1e-4) l.on_span({"wait for input", started, loaded});
    l.on_span({"step", loaded, ended});
  });
  // All ranks send about the same; what they sent exactly is in the summary.
  const double all_sent = meter_ ? sent_ * team_.world().size() : -1;
  account(step + 1, result, started, ended, all_sent);
}

// The steps up to `step` are done; `result` is of those that had not been accounted for.
void Training::account(std::int64_t step, const StepResult& result, double started, double ended, double bytes) {
  Progress& p = *progress_;
  next_ = step;
  p.epoch_loss += result.loss * static_cast<double>(result.terms);
  p.epoch_correct += result.correct;
  p.epoch_terms += static_cast<double>(result.terms);
  p.evaluation_due = evaluator_ && (next_ == job_.total_steps || due(job_.eval_every, step - 1));
  pace_.add(ended - started, result.samples);
  const double done_here = static_cast<double>(std::max<std::int64_t>(1, next_ - pace_.first_step));
  const StepEvent event{
      .step = next_,
      .total_steps = job_.total_steps,
      .epoch = epochs_after(step - 1),
      .lr = job_.schedule.lr(step - 1),
      .result = result,
      .seconds = ended - pace_.begin,
      .samples_per_s = pace_.recent_rate,
      .peak_share = peak_share(pace_.recent_rate),
      .eta_seconds = (ended - pace_.begin) / done_here * static_cast<double>(job_.total_steps - next_),
      .bytes = bytes};
  tell([&](RunListener& l) { l.on_step(event); });
}

// Replicas go on until something is due for which all ranks meet.
void Training::do_round(data::Loader& loader, const StopFlag& stop) {
  Progress& p = *progress_;
  const std::int64_t from = next_, to = next_meeting();
  if (batch_sequence_.at(static_cast<std::uint64_t>(from)).batch == 0)
    p.epoch_loss = p.epoch_correct = p.epoch_terms = 0;
  double told = clock_.seconds();
  const double started = told;
  const ReplicaRound round{.from = from,
                           .to = to,
                           .enough = enough_samples(from),
                           .loader = &loader,
                           .lr = [&](std::int64_t step) { return job_.schedule.lr(step); },
                           .epoch = [&](std::int64_t step) { return epochs_after(step - 1); },
                           .wants_to_stop = [&] { return stop.load(std::memory_order_relaxed); },
                           .on_progress =
                               [&](std::int64_t step, const StepResult& result, double bytes) {
                                 const double now = clock_.seconds();
                                 if (step > next_ || result.samples > 0)
                                   account(std::max<std::int64_t>(step, 1), result, told, now, bytes);
                                 told = now;
                               }};
  const std::int64_t reached = round.enough > 0 ? replica_->run(round) : to;  // else the epoch is over already
  next_ = reached;
  stop_agreed_ = reached < to;
  p.evaluation_due = evaluator_ && (next_ == job_.total_steps || (next_ > 0 && due(job_.eval_every, next_ - 1)));
  replica_->read_model();
  tell([&](RunListener& l) { l.on_span({"round", started, clock_.seconds()}); });
}

// Samples from that step on with which its epoch has as many as the system wants of it.
std::int64_t Training::enough_samples(std::int64_t step) const {
  const double share = job_.composition->work.epoch_share;
  if (share >= 1) return std::numeric_limits<std::int64_t>::max();
  const data::Cursor c = batch_sequence_.at(static_cast<std::uint64_t>(step));
  const data::Cursor end = batch_sequence_.at(batch_sequence_.steps_before(c.epoch + 1) - 1);
  const auto all = static_cast<double>(end.samples.first + end.samples.count);
  return static_cast<std::int64_t>(std::ceil(share * all)) - static_cast<std::int64_t>(c.samples.first);
}

std::int64_t Training::next_meeting() const {
  std::int64_t step = next_ + 1;
  while (step < job_.total_steps && !due(job_.eval_every, step - 1) && !due(job_.checkpoint_every, step - 1) &&
         batch_sequence_.at(static_cast<std::uint64_t>(step)).batch != 0)
    ++step;
  return step;
}

data::LoaderOptions Training::loader_options() const {
  data::LoaderOptions options{.seed = job_.seed,
                              .batches = job_.batches,
                              .drop_partial = job_.drop_partial,
                              .shards = static_cast<std::uint64_t>(job_.shards),
                              .prefetch = team_.world().place().threads ? 2 : 0,
                              .first_step = static_cast<std::uint64_t>(next_)};
  if (replica_) {
    options.shards = static_cast<std::uint64_t>(replica_->trainer().shards());
    options.parts = static_cast<std::uint64_t>(team_.world().size());
    options.part = static_cast<std::uint64_t>(team_.world().rank());
    if (!replica_->may_prefetch()) options.prefetch = 0;
  } else {
    const ShardRange own = trainer_->own_shards();
    options.own = data::Slice{static_cast<std::uint64_t>(own.first), static_cast<std::uint64_t>(own.count())};
  }
  return options;
}

void Training::Pace::add(double step_seconds, std::int64_t step_samples) {
  training_seconds += step_seconds, window_seconds += step_seconds;
  samples += step_samples, window_samples += step_samples;
  if (window_seconds > 1.0 || recent_rate == 0) {
    recent_rate = static_cast<double>(window_samples) / window_seconds;
    window_seconds = 0, window_samples = 0;
  }
}

}  // namespace echelon
