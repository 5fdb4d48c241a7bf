#include "run/training.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "kernels/peak.h"
#include "run/training_progress.h"
#include "run/weights.h"
#include "track/weights_hash.h"

namespace echelon {

namespace {

// What one core can do at most, in GFLOP/s: a hundredth of a second is enough for a share in per cent.
double measure_core_peak(Clock& clock) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double start = clock.seconds(), flops = kernels::fma_work(400'000);
    best = std::max(best, flops / (clock.seconds() - start) / 1e9);
  }
  return best;
}

std::int64_t largest_slice(const data::BatchSequence& sequence, int shards) {
  return (static_cast<std::int64_t>(sequence.largest_batch()) + shards - 1) / shards;
}

double score_of(const Evaluation& e) { return e.accuracy >= 0 ? e.accuracy : -e.loss; }

}  // namespace

Training::Training(const TrainingJob& job, Disk& disk, Clock& clock, Team& team, std::string checkpoints, int keep,
                   MeteredWorld* meter)
    : job_(job),
      disk_(disk),
      clock_(clock),
      team_(team),
      directory_(std::move(checkpoints)),
      batch_sequence_(job.train->size(), job.batches, job.drop_partial),
      meter_(meter),
      progress_(std::make_unique<Progress>()),
      core_peak_(team.world().place().threads ? measure_core_peak(clock) : 0) {
  const int workers = team.world().size();
  if (job.composition && workers > 1) {
    const int shards = std::max(1, job.shards / workers);
    replica_ =
        std::make_unique<Replica>(ReplicaSettings{.model = job.model,
                                                  .make_optim = job.make_optim,
                                                  .fields = job.train->fields(),
                                                  .shards = shards,
                                                  .seed = job.seed,
                                                  .largest_slice = largest_slice(batch_sequence_, shards * workers),
                                                  .stragglers = job.stragglers},
                                  *job.composition, *meter, team);
  } else {
    trainer_ = std::make_unique<Trainer>(*job.model, job.make_optim, job.train->fields(), job.shards, job.seed, team,
                                         largest_slice(batch_sequence_, job.shards));
  }
  flops_per_sample_ = trainer().flops_per_sample();
  if (job.test) {
    const auto batch = static_cast<std::int64_t>(std::min<std::uint64_t>(job.test->size(), 256));
    evaluator_ = std::make_unique<Evaluator>(*job.model, trainer().table(), parameters(), job.test, batch, team);
  }
  if (!directory_.empty() && team.world().rank() == 0)
    checkpointer_ = std::make_unique<Checkpointer>(
        disk, clock, team.world().place().threads ? make_background("checkpoints", 1) : make_inline_background(),
        directory_, CheckpointPolicy{.keep_last = keep});
}

Training::~Training() = default;

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
bool Training::resume() {
  std::array<std::int64_t, 3> head{};  // found, step, bytes of the progress
  std::string progress;
  if (team_.world().rank() == 0) {
    CheckpointSearch search = latest_valid(disk_, directory_);
    for (const std::string& problem : search.skipped)
      tell([&](RunListener& l) { l.on_note("skipped a checkpoint: " + problem); });
    if (search.found) {
      load(*search.found);
      progress = progress_->to_json().dump();
      head = {1, next_, static_cast<std::int64_t>(progress.size())};
    }
  }
  team_.broadcast(std::as_writable_bytes(std::span(head)));
  if (head[0] == 0) return false;
  progress.resize(static_cast<std::size_t>(head[2]));
  team_.broadcast(std::as_writable_bytes(std::span(progress)));
  progress_->read(Json::parse(progress));
  next_ = last_saved_ = head[1];
  replica_ ? replica_->scatter() : trainer_->broadcast_state();
  return true;
}

void Training::load(Checkpoint& checkpoint) {
  const TrainingPosition& m = checkpoint.manifest.position;
  expect_same_training(m, position(), checkpoint.path);
  if (m.step > job_.total_steps)
    bad_input("{} is at step {}, but the recipe ends at step {}", checkpoint.path, m.step, job_.total_steps);
  load_weights(checkpoint.weights, trainer().table(), parameters());
  load_state(checkpoint.state, state());
  progress_->read(m.extra);
  next_ = m.step;
  last_saved_ = m.step;
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
  const bool measured = progress_->best_score && progress_->evaluations_since_best == 0;
  const std::optional<int> workers = job_.composition ? std::optional(team_.world().size()) : std::nullopt;
  return {.step = next_,
          .epoch = c.epoch,
          .cursor = static_cast<std::int64_t>(c.samples.first),
          .seed = job_.seed,
          .model = job_.model_fingerprint,
          .data = job_.data_fingerprint,
          .recipe = job_.recipe_fingerprint,
          .workers = workers,
          .score = measured ? progress_->best_score : std::nullopt,
          .extra = progress_->to_json()};
}

void Training::save(Checkpointer::IfBusy if_busy) {
  // A finished run is saved once more even if its last step was: the reason why it ended belongs to it.
  if (directory_.empty() || (last_saved_ == next_ && progress_->stopped_by.empty())) return;
  replica_ ? replica_->gather() : trainer_->begin_reading();
  if (checkpointer_) {
    const auto weights = weight_views(trainer().table(), parameters());
    const auto views = state_views(state());
    checkpointer_->save(position(), weights, views, if_busy,
                        before_save_ ? before_save_() : std::shared_future<void>());
  }
  if (trainer_) trainer_->end_of_reading();
  last_saved_ = next_;
}

bool Training::wants_to_stop(const StopFlag& stop) const {
  return team_.world().size() > 1 ? stop_agreed_ : stop.load(std::memory_order_relaxed);
}

void Training::do_evaluation(const StopFlag& stop) {
  const double started = clock_.seconds();
  std::function<bool()> keep_going;  // several ranks finish what they have begun together
  if (team_.world().size() == 1) keep_going = [&] { return !wants_to_stop(stop); };
  const Evaluation test = evaluator_->run({}, keep_going);
  tell([&](RunListener& l) { l.on_span({"evaluate", started, clock_.seconds()}); });
  if (keep_going && !keep_going()) return;  // cut short: it stays due, also after resuming
  Progress& p = *progress_;
  p.evaluation_due = false;
  last_test_ = test;
  const double score = score_of(test);
  const bool best = !p.best_score || score > *p.best_score;
  p.evaluations_since_best = best ? 0 : p.evaluations_since_best + 1;
  if (best) p.best_score = score;
  tell([&](RunListener& l) { l.on_evaluation({next_, epochs_after(next_ - 1), test, best}); });
  if ((job_.target_accuracy && test.accuracy >= *job_.target_accuracy) ||
      (job_.target_loss && test.loss <= *job_.target_loss))
    p.stopped_by = "target";
  else if (job_.patience > 0 && p.evaluations_since_best >= job_.patience)
    p.stopped_by = "patience";
}

RunSummary Training::run(const StopFlag& stop) {
  data::Loader loader(job_.train, loader_options());
  Progress& p = *progress_;
  if (p.stopped_by == "signal" || (p.stopped_by == "end" && next_ < job_.total_steps))
    p.stopped_by.clear();  // that is what resuming is for, and a later end
  pace_ = {.begin = clock_.seconds(), .first_step = next_};
  while (p.stopped_by.empty()) {
    if (p.evaluation_due && !wants_to_stop(stop)) do_evaluation(stop);
    if (!p.stopped_by.empty()) break;
    if (next_ > pace_.first_step && due(job_.checkpoint_every, next_ - 1)) save(Checkpointer::IfBusy::skip);
    if (checkpointer_) report_saves(checkpointer_->results());
    if (wants_to_stop(stop)) {
      p.stopped_by = "signal";
    } else if (next_ == job_.total_steps) {
      p.stopped_by = "end";
    } else {
      replica_ ? do_round(loader, stop) : do_step(loader, stop);
    }
  }
  if (evaluator_ && !last_test_ && p.stopped_by != "signal")
    last_test_ = evaluator_->run();  // resumed when all was done
  save(Checkpointer::IfBusy::wait);
  std::vector<SaveResult> saves;
  if (checkpointer_) report_saves(saves = checkpointer_->finish());
  RunSummary summary = summarise(loader.seconds_waited());
  if (!saves.empty() && !saves.back().saved) summary.not_saved = saves.back().warning;
  if (replica_) replica_->close();
  return summary;
}

RunSummary Training::summarise(double waited_for_input) {
  const Progress& p = *progress_;
  RunSummary s{.steps = next_,
               .epochs = epochs_after(next_ - 1),
               .train_loss = p.epoch_terms > 0 ? p.epoch_loss / p.epoch_terms : 0,
               .test = last_test_,
               .seconds = clock_.seconds() - pace_.begin,
               .weights_sha256 = weights_hash(weight_views(trainer().table(), parameters())),
               .stopped_by = p.stopped_by};
  if (job_.model->task() == models::Task::classify && p.epoch_terms > 0)
    s.train_accuracy = p.epoch_correct / p.epoch_terms;
  if (pace_.training_seconds > 0) {
    s.samples_per_s = static_cast<double>(pace_.samples) / pace_.training_seconds;
    s.waited_for_input = waited_for_input / pace_.training_seconds;
    s.peak_share = peak_share(s.samples_per_s);
  }
  if (replica_) s.bytes = replica_->bytes_sent(), s.system = replica_->figures();
  s.working = replica_ ? team_.world().size() : std::min(team_.world().size(), job_.shards);
  share_times(s, waited_for_input);
  check_agreement(s.weights_sha256);
  return s;
}

void Training::share_times(RunSummary& summary, double waited_for_input) {
  const World& world = team_.world();
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::size_t each = 4 + ranks;
  std::vector<double> all(ranks * each);
  const RankTimes mine = replica_ ? replica_->times() : trainer().times();
  const std::span own = std::span(all).subspan(static_cast<std::size_t>(world.rank()) * each, each);
  own[0] = waited_for_input, own[1] = mine.compute, own[2] = mine.exchange;
  own[3] = sent_;
  std::ranges::copy(mine.waiting_for, own.begin() + 4);
  team_.share(all, std::vector<std::size_t>(ranks, each));
  if ((meter_ && !replica_) || ranks == 1) summary.bytes = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::span of = std::span(all).subspan(r * each, each);
    if (meter_ && !replica_) summary.bytes += of[3];
    summary.ranks.push_back(
        {.input = of[0], .times = {.compute = of[1], .exchange = of[2], .waiting_for = {of.begin() + 4, of.end()}}});
  }
}

// Ranks that were given the same recipe have the same bits. If they have not, nobody may go on as if nothing were.
void Training::check_agreement(const std::string& hash) {
  const auto ranks = static_cast<std::size_t>(team_.world().size());
  std::vector<double> hashes(ranks);
  hashes[static_cast<std::size_t>(team_.world().rank())] =
      static_cast<double>(std::stoull(hash.substr(0, 12), nullptr, 16));
  team_.share(hashes, std::vector<std::size_t>(ranks, 1));
  for (std::size_t r = 1; r < ranks; ++r)
    if (hashes[r] != hashes[0])
      fail("rank {} has other weights than rank 0 after step {}: do all ranks run the same program?", r, next_);
}

double Training::peak_share(double samples_per_s) const {
  const double cores = team_.cores().count() * team_.world().size();
  return core_peak_ > 0 ? samples_per_s * flops_per_sample_ / 1e9 / (core_peak_ * cores) : 0;
}

}  // namespace echelon
