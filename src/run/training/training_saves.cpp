// The state of a training: saved in checkpoints or kept in memory after every step, and gone on from.

#include "run/training/loop_state.h"
#include "run/weights.h"
#include "world/mailbox/message_order.h"

namespace echelon {

namespace {

// With its rules of layers: what decides which rank has what.
std::string plan_text(const PlanSpec& plan) {
  std::string text = to_string(plan);
  for (const LayerRule& rule : plan.layers) text += "; " + to_string(rule);
  return text;
}

}  // namespace

// Rank 0 loads; the others get the tensors and what else a checkpoint remembers from it.
bool Training::resume(AllDamaged if_so) {
  struct Found {  // what rank 0 has found
    std::int64_t found = 0, step = 0, text_bytes = 0;
  } head;
  std::string text;  // of the loop's state
  if (team_.world().rank() == 0) {
    CheckpointSearch search = latest_valid(disk_, directory_);
    for (const std::string& problem : search.skipped)
      tell([&](RunListener& l) { l.on_note("skipped a checkpoint: " + problem); });
    if (!search.found && !search.skipped.empty() && if_so == AllDamaged::refuse)
      throw AllCheckpointsDamaged(fmt::format("no checkpoint in {} can be used", directory_));
    if (search.found) {
      load(*search.found);
      text = loop_->to_json().dump();
      head = {1, next_, static_cast<std::int64_t>(text.size())};
    }
  }
  team_.broadcast(std::as_writable_bytes(std::span(&head, 1)));
  if (head.found == 0) return false;
  text.resize(static_cast<std::size_t>(head.text_bytes));
  team_.broadcast(std::as_writable_bytes(std::span(text)));
  loop_->read(Json::parse(text));
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
  loop_->read(m.extra);
  next_ = m.step;
  last_saved_ = m.step;
}

bool keeps_each_step(const TrainingJob& job, int workers) {
  const bool replicas = trains_replicas(job.composition.get(), workers);
  return !replicas && !job.plan.splits_model();
}

void Training::keep_in(KeptState& kept, const KeepingRanks& ranks, Keep how) {
  const bool each_step = keeps_each_step(job_, team_.world().size());
  keeper_ = std::make_unique<StateKeeper>(kept, *engine_, team_, ranks, each_step, how);
  const bool notes = job_.composition ? job_.composition->follows_messages() : job_.plan.is_message_driven();
  if (notes && keeper_->keeps_copies()) keeper_->note_messages(job_.recipe_fingerprint + plan_text(job_.plan));
}

void Training::keep_step() {
  keeper_->keep({.step = next_, .epoch = loop_->epoch, .evaluation_due = evaluation_follows(next_)}, loop_text_);
}

void Training::keep_copy() {
  if (keeper_ && keeper_->keeps_copies()) keep();
}

void Training::keep() {
  loop_text_ = loop_->to_json().dump();
  keeper_->keep({.step = next_, .epoch = loop_->epoch, .evaluation_due = loop_->evaluation_due}, loop_text_);
}

void Training::resume_kept() {
  const KeptState::Position position = keeper_->load(loop_text_);
  go_on_from(position);
  const std::int64_t noted = keeper_->repeat_messages(position);
  if (noted != 0)
    tell([&](RunListener& l) {
      l.on_note(noted > 0 ? fmt::format("the steps after step {} are done again with their messages in the same order: "
                                        "no update is lost",
                                        position.step)
                          : fmt::format("nobody knows the order of all messages any more: the updates after step {} "
                                        "are lost, and others are made",
                                        position.step));
    });
}

void Training::resume_kept_position() {
  go_on_from(keeper_->load_position(loop_text_));
  engine_->read_model();
  save_first_ = true;  // what is on disk is of another system
}

void Training::go_on_from(const KeptState::Position& position) {
  loop_->read(Json::parse(loop_text_));
  loop_->epoch = position.epoch;
  loop_->evaluation_due = position.evaluation_due;
  next_ = position.step;
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
  const bool measured = loop_->best && loop_->best_step == next_;
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
          .score = measured ? std::optional(loop_->best->value) : std::nullopt,
          .loss = measured ? std::optional(loop_->best->loss) : std::nullopt,
          .extra = loop_->to_json()};
}

void Training::save(Checkpointer::IfBusy if_busy) {
  // A finished run is saved once more even if its last step was: the reason why it ended belongs to it.
  if (directory_.empty() || (last_saved_ == next_ && loop_->stopped_by.empty())) return;
  expect_agreement();
  engine_->gather();
  if (checkpointer_) {
    tell([](RunListener& l) { l.on_save_begins(); });
    const auto weights = weight_views(engine_->table(), engine_->model());
    const auto views = state_views(engine_->state());
    checkpointer_->save(position(), weights, views, if_busy,
                        before_save_ ? before_save_() : std::shared_future<void>());
  }
  engine_->end_gather();
  last_saved_ = next_;
}

}  // namespace echelon
