// A step in two halves, for a trainer that is alone: the gradient, and what is made of it.

#include <algorithm>

#include "kernels/vector.h"
#include "parallel/step/trainer_phase.h"

namespace echelon {

StepResult Trainer::compute(std::uint64_t step, const data::Batch& batch, double mean_over) {
  invariant(team_.world().size() == 1 && phases_.size() == 1, "a step in two halves: one rank, one phase");
  TrainerPhase& phase = *phases_.front();
  prepare(phase, batch);
  handed_in_ = false, samples_done_ = 0;
  for (auto& missing : bucket_missing_) missing = busy_cores_;
  // Parts of one global batch have streams of their own.
  const StepContext context{.seed = seed_ + batch.part() * 0x9E3779B97F4A7C15ull,
                            .step = static_cast<std::uint32_t>(step)};
  cores_.run([&](int core) {
    compute_phase(phase, core, batch, context, mean_over);
    cores_.barrier();
    if (core == 0) sum_losses(phase);
    if (bucket_ready_) return;
    const Update::Range part =
        phase.update->part(static_cast<std::size_t>(core), static_cast<std::size_t>(cores_.count()));
    for (std::size_t b = part.first; b < part.last; ++b) {
      const Update::Block& block = phase.update->blocks()[b];
      sum_over_shards(shards_, partials_, block.offset, block.offset + block.size, total_.data());
    }
  });
  if (!phase.finite) explain_not_finite(phase, batch, context);
  if (batch.samples() == 0)  // nothing was seen: statistics stay where they are
    for (const TrainedSpan& s : phase.segments)
      if (s.statistic) kernels::copy(total_.data() + s.offset, parameters_.data() + s.offset, s.size);
  ++steps_;
  const std::int64_t done = samples_done_;
  if (handed_in_ && done > 0)
    kernels::scale(total_.data(), total_.data(),
                   static_cast<float>(static_cast<double>(batch.samples()) / static_cast<double>(done)), total_.size());
  return result_of(phase, done);
}

void Trainer::update(std::uint64_t step, double lr) {
  TrainerPhase& phase = *phases_.front();
  phase.update->begin({.number = static_cast<std::int64_t>(step) + 1, .lr = lr, .grad_scale = 1});
  cores_.run([&](int core) { update(phase, core, summed_); });
}

void Trainer::move_statistics() { phases_.front()->update->move_statistics(); }

const std::vector<TrainedSpan>& Trainer::segments() const { return phases_.front()->segments; }

std::vector<Range> Trainer::reading_order() {
  TrainerPhase& phase = *phases_.front();
  phase.plans.prepare(1);
  std::vector<Range> order;
  for (const NodeActions& m : node_actions(phase, 1))
    for (const Range& r : m.reads)
      if (std::ranges::find(order, r.begin, &Range::begin) == order.end()) order.push_back(r);
  return order;
}

const std::vector<Bucket>& Trainer::buckets() const { return phases_.front()->buckets; }

void Trainer::send_buckets(std::size_t least_bytes, std::function<void(std::size_t)> ready) {
  TrainerPhase& phase = *phases_.front();
  bucket_ready_ = std::move(ready);
  phase.node_actions.clear();
  phase.plans.prepare(1);
  phase.buckets = fuse_pieces(ready_pieces(phase.plans.at(1).graph, 1, 0), least_bytes);
  bucket_missing_ = std::vector<std::atomic<int>>(phase.buckets.size());
}

}  // namespace echelon
