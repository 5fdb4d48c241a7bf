#include "parallel/exchanges/learner_slots.h"

#include <algorithm>

namespace echelon::exchanges {

void LearnerState::give_to(ReplicaTrainer& trainer) const {
  std::ranges::copy(weights, trainer.parameters().begin());
  std::span<const std::byte> from = optimizer;
  for (const StateSpan& s : trainer.state()) {
    std::ranges::copy(from.first(s.bytes.size()), s.bytes.begin());
    from = from.subspan(s.bytes.size());
  }
}

void LearnerState::take_from(ReplicaTrainer& trainer) const {
  std::ranges::copy(trainer.parameters(), weights.begin());
  std::byte* to = optimizer.data();
  for (const StateSpan& s : trainer.state()) to = std::ranges::copy(s.bytes, to).out;
}

LearnerSlots::LearnerSlots(int count, int cores,
                           const std::function<std::unique_ptr<ReplicaTrainer>(Cores&)>& make_trainer)
    : slots_(static_cast<std::size_t>(count)), drivers_(std::make_unique<Cores>(count)) {
  for (Slot& slot : slots_) {
    slot.cores = std::make_unique<Cores>(cores / count);
    slot.trainer = make_trainer(*slot.cores);
  }
}

void LearnerSlots::prepare(int slot, const StepInput& input, const LearnerState& learner) {
  Slot& it = slots_[static_cast<std::size_t>(slot)];
  it.info = input.info;
  it.batch.copy_from(*input.batch);
  it.learner = learner;
}

StepResult LearnerSlots::run(int count, const ComputeHooks& hooks) {
  drivers_->run([&](int driver) {
    Slot& slot = slots_[static_cast<std::size_t>(driver)];
    if (driver < count) make_step(slot, driver * slot.cores->count(), hooks);
  });
  StepResult sum;
  for (int i = 0; i < count; ++i) {
    const StepResult& r = slots_[static_cast<std::size_t>(i)].result;
    sum.loss += r.loss * static_cast<double>(r.terms);
    sum.correct += r.correct, sum.samples += r.samples, sum.terms += r.terms;
  }
  if (sum.terms > 0) sum.loss /= static_cast<double>(sum.terms);
  return sum;
}

void LearnerSlots::make_step(Slot& slot, int first_core, const ComputeHooks& hooks) {
  ReplicaTrainer& trainer = *slot.trainer;
  trainer.hooks().slowness = hooks.slowness;
  trainer.hooks().watch = {.now = hooks.watch.now, .on_node = {}};  // spans are of the worker's own thread
  if (hooks.watch.on_node)
    trainer.hooks().watch.on_node = [&hooks, first_core](int core, const Node& node, double begin, double end) {
      hooks.watch.on_node(first_core + core, node, begin, end);
    };
  slot.learner.give_to(trainer);
  const double samples = std::max(1.0, static_cast<double>(slot.batch.samples()));
  slot.result = trainer.compute(static_cast<std::uint64_t>(slot.info.step), slot.batch, samples);
  trainer.update(static_cast<std::uint64_t>(slot.info.clock), slot.info.lr);
  slot.learner.take_from(trainer);
}

}  // namespace echelon::exchanges
