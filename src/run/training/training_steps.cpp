// Steps of a training: the engine runs them until something is due for which all ranks meet.

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/flip_labels.h"
#include "parallel/step/halo.h"
#include "parallel/step/not_finite.h"
#include "run/training/loop_state.h"

namespace echelon {

// What ends the run is told to the other ranks before anything is torn down: whatever else goes wrong because of it is
// not the cause.
void Training::run_steps(data::Loader& loader, const StopFlag& stop) try {
  carry_out_steps(loader, stop);
} catch (const PeerLost&) {
  throw;
} catch (const NotFinite& problem) {
  std::string text = problem.what();
  if (const auto& sample = problem.sample())
    text += fmt::format(": '{}' of sample {} of the training data (counted from 0)", sample->field,
                        loader.dataset().origin(sample->index, {.seed = job_.seed, .epoch = sample->epoch}));
  if (team_.world().size() > 1) text = fmt::format("rank {}: {}", team_.world().rank(), text);
  team_.world().abort(text, FailureKind::bad_input);
  throw BadInput(text);
} catch (const std::exception& problem) {
  team_.world().abort(problem.what(), kind_of(problem));
  throw;
}

void Training::carry_out_steps(data::Loader& loader, const StopFlag& stop) {
  const std::int64_t from = next_, to = next_pause();
  if (batch_sequence_.at(static_cast<std::uint64_t>(from)).batch == 0) loop_->epoch = {};
  if (check_ && check_->copies_before(from)) check_->copy();
  double accounted = clock_.seconds();
  const Reached reached =
      engine_->run({.from = from,
                    .to = to,
                    .enough = enough_samples(from),
                    .loader = &loader,
                    .lr = [&](std::int64_t step) { return rate(step); },
                    .epoch = [&](std::int64_t step) { return epochs_after(step - 1); },
                    .asks_to_stop =
                        [&] {
                          return stop.load(std::memory_order_relaxed) || (control_ && control_->waiting()) ||
                                 (keeper_ && keeper_->change_wanted());
                        },
                    .on_progress =
                        [&](const StepProgress& progress) {
                          if (keeper_) keeper_->expect_valid(clock_.seconds());
                          if (progress.step > next_ || progress.result.samples > 0)
                            account(progress, accounted, clock_.seconds());
                          if (check_) check_->note_step(next_);
                          if (keeper_) keeper_->count_step(next_);
                          if (keeper_ && keeper_->each_step() && keeper_->due(next_) && !check_) keep_step();
                          if (checkpointer_) report_saves(checkpointer_->results());
                          accounted = clock_.seconds();
                        },
                    .on_span = [&](const Span& span) { tell([&](RunListener& l) { l.on_span(span); }); }});
  next_ = reached.step;
  stop_agreed_ = reached.stop;
  loop_->evaluation_due = evaluation_follows(next_);
  engine_->read_model();
  if (keeper_ && !keeper_->each_step() && keeper_->keeps_copies()) keep_step();
}

bool Training::evaluation_follows(std::int64_t step) const {
  return evaluate_ && (step == job_.total_steps || (step > 0 && due(job_.eval_every, step - 1)));
}

// The steps up to `progress.step` are done; its result is of those that had not been accounted for.
void Training::account(const StepProgress& progress, double started, double ended) {
  const StepResult& result = progress.result;
  next_ = std::max<std::int64_t>(progress.step, 1);
  loop_->epoch.loss += result.loss * static_cast<double>(result.terms);
  loop_->epoch.correct += result.correct;
  loop_->epoch.terms += static_cast<double>(result.terms);
  pace_.add(ended - started, result.samples);
  const double done_here = static_cast<double>(std::max<std::int64_t>(1, next_ - pace_.first_step));
  const StepEvent event{
      .step = next_,
      .total_steps = job_.total_steps,
      .epoch = epochs_after(next_ - 1),
      .lr = rate(next_ - 1),
      .result = result,
      .seconds = ended - pace_.begin,
      .step_seconds = pace_.training_seconds,
      .samples_per_s = pace_.recent_rate,
      .peak_share = peak_share(pace_.recent_rate),
      .eta_seconds = (ended - pace_.begin) / done_here * static_cast<double>(job_.total_steps - next_),
      .bytes = progress.bytes};
  tell([&](RunListener& l) { l.on_step(event); });
}

// Samples from that step on with which its epoch has as many as the system wants of it.
std::int64_t Training::enough_samples(std::int64_t step) const {
  const double share = engine_->epoch_share();
  if (share >= 1) return std::numeric_limits<std::int64_t>::max();
  const data::Cursor c = batch_sequence_.at(static_cast<std::uint64_t>(step));
  const data::Cursor end = batch_sequence_.at(batch_sequence_.steps_before(c.epoch + 1) - 1);
  const auto all = static_cast<double>(end.samples.first + end.samples.count);
  return static_cast<std::int64_t>(std::ceil(share * all)) - static_cast<std::int64_t>(c.samples.first);
}

double Training::rate(std::int64_t step) const {
  return job_.schedule.lr(step) * loop_->plateau.factor() * loop_->rate_factor;
}

std::int64_t Training::next_pause() const {
  std::int64_t step = next_ + 1;
  while (step < job_.total_steps && !due(job_.eval_every, step - 1) && !due(job_.checkpoint_every, step - 1) &&
         batch_sequence_.at(static_cast<std::uint64_t>(step)).batch != 0 &&
         !(keeper_ && !keeper_->each_step() && keeper_->due(step)) &&
         !(check_ && (check_->copies_before(step) || step % check_->every() == 0)) &&
         std::ranges::find(replayed_, step, &JournalLine::step) == replayed_.end())
    ++step;
  return step;
}

data::DatasetPtr Training::samples() const {
  const World& world = team_.world();
  const bool flips = job_.byzantine.lie == Lie::label_flip && lies_here(job_.byzantine, world.rank(), world.size());
  const data::DatasetPtr own = with_halo(job_.train, batch_sequence_, job_.partition, team_);
  return flips ? data::labels_flipped(own) : own;
}

data::LoaderOptions Training::loader_options() const {
  data::LoaderOptions options{.seed = job_.seed,
                              .batches = job_.batches,
                              .drop_partial = job_.drop_partial,
                              .partition = job_.partition,
                              .prefetch = team_.world().place().threads ? 2 : 0,
                              .first_step = static_cast<std::uint64_t>(next_)};
  engine_->adapt(options);
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
