#include "parallel/step/trainer.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/vector.h"
#include "parallel/step/block_update.h"
#include "parallel/step/rank_buckets.h"

namespace echelon {

Trainer::Trainer(const ComputeSettings& settings, const std::function<Optim()>& make_optim, Team& team)
    : team_(team),
      cores_(team.cores()),
      world_(team.world()),
      compute_(settings, world_, cores_,
               {.rank = world_.rank(), .ranks = world_.size(), .share_memory = team.is_everyone()},
               [&team](const std::string& name, std::size_t bytes) { return team.memory(name, bytes); }),
      total_(compute_.place_for_sum()),
      finite_(phases().size()) {
  const auto ranks = static_cast<std::size_t>(world_.size());
  stops_ = {reinterpret_cast<StopRequest*>(team.memory("stop requests", ranks * sizeof(StopRequest)).data()), ranks};
  not_finite_ = {reinterpret_cast<std::uint32_t*>(team.memory("not finite", ranks * sizeof(std::uint32_t)).data()),
                 ranks};
  hooks().announce = ranks > 1;
  const std::span<const PartialSum> own = compute_.partial_sums();
  sums_.assign(own.begin(), own.end());
  if (!team.is_everyone()) {
    rank_sum_ = std::make_unique<RankSum>(team.group(), settings.shards, sums_, table().floats());
    std::vector<ShardRange> ranges;
    for (Rank r = 0; r < world_.size(); ++r) ranges.push_back(shards_of(r, world_.size(), settings.shards));
    losses_ = std::make_unique<LossGather>(team, std::move(ranges));
    hooks().bucket_complete = [this](std::size_t bucket) {
      if (const BitFlip::Of how = spoils_.exchange(BitFlip::weights); how != BitFlip::weights) {
        const Bucket& part = phases().front()->buckets[bucket];
        spoil(how, compute_.place_for_sum().subspan(part.begin, part.end - part.begin));
      }
      rank_sum_->complete(bucket);
    };
    total_ = rank_sum_->total();
    sums_ = {{0, settings.shards, total_.data()}};
  }
  for (const auto& phase : phases()) {
    const auto memory = [&](const std::string& name, std::size_t bytes) {
      return team.memory(phase->name + " " + name, bytes);
    };
    Optim optim = make_optim();
    updates_.push_back(
        std::make_unique<Update>(std::move(optim.rule), optim.clip, phase->segments, parameters(), total_, memory));
  }
  broadcast_state();
}

StepResult Trainer::step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop) {
  stops_[static_cast<std::size_t>(world_.rank())] = {asks_to_stop};
  if (rank_sum_) plan_buckets(batch);
  compute_.prepare(batch);
  for (auto& update : updates_)
    update->begin({.number = static_cast<std::int64_t>(step) + 1, .lr = lr, .grad_scale = 1});
  const StepContext context{.seed = compute_.settings().seed, .step = static_cast<std::uint32_t>(step)};
  bool stop = false;
  cores_.run([&](int core) {
    for (std::size_t p = 0; p < phases().size(); ++p) {
      run_phase(p, core, batch, context);
      if (!finite_[p]) return;
      if (core == 0) stop = std::ranges::any_of(stops_, [](const StopRequest& s) { return s.asked != 0; });
      update(p, core);
      if (p + 1 == phases().size()) return;
      if (core == 0) finite_[p] = std::ranges::all_of(not_finite_, [](std::uint32_t bad) { return bad == 0; });
      cores_.barrier();
      if (!finite_[p]) return;
    }
  });
  if (std::ranges::any_of(not_finite_, [](std::uint32_t bad) { return bad != 0; }))
    explain_gradient(*phases().front(), context);
  for (std::size_t p = 0; p < phases().size(); ++p)
    if (!finite_[p]) explain(*phases()[p], batch, context);

  ++steps_;
  const ComputePhase& last = *phases().back();
  const auto samples = static_cast<std::int64_t>(batch.samples());
  StepResult result{.correct = last.total.correct,
                    .samples = samples,
                    .terms = samples * last.loss_terms,
                    .gradient_norm = updates_.back()->gradient_norm(),
                    .stop = stop};
  if (samples > 0) result.loss = last.total.loss / static_cast<double>(result.terms);
  return result;
}

// One bucket until the times mean something, then those that finish earliest.
void Trainer::plan_buckets(const data::Batch& batch) {
  constexpr std::int64_t warm_up = 2;  // steps
  for (const auto& phase : phases()) {
    if (phase->buckets.empty()) compute_.set_buckets(*phase, one_bucket(*phase));
    if (steps_ == warm_up) compute_.set_buckets(*phase, agree_on_buckets(team_, compute_, *phase, batch, *rank_sum_));
  }
}

// Forward, backward, and the sum over ranks. Leaves in finite_ whether the loss is finite, for all cores.
void Trainer::run_phase(std::size_t index, int core, const data::Batch& batch, StepContext context) {
  ComputePhase& phase = *phases()[index];
  if (core == 0 && rank_sum_) rank_sum_->begin(phase.buckets);
  if (rank_sum_) cores_.barrier();
  compute_.run(phase, core, batch, context, static_cast<double>(batch.samples()));
  if (core == 0 && world_.size() > 1) world_.set_status("the exchange of gradients");
  const double computed = world_.now();
  team_.barrier(core, "the end of backward");
  const double met = world_.now();
  if (core == 0) {
    if (losses_) losses_->run(phase.losses, stops_);
    finite_[index] = ShardCompute::sum_losses(phase);
    if (rank_sum_) rank_sum_->finish(met);
    hooks().watch.span({"wait for the other cores and ranks", computed, met});
    if (rank_sum_) hooks().watch.span({"sum over ranks", met, world_.now(), true});
  }
  cores_.barrier();
}

void Trainer::update(std::size_t index, int core) {
  const double begin = world_.now();
  const UpdatePart part{*updates_[index],
                        team_.number(core),
                        team_.size(),
                        compute_.settings().shards,
                        sums_,
                        total_.data(),
                        &not_finite_[static_cast<std::size_t>(world_.rank())]};
  sum_and_update(
      part, core == 0, [&](const char* what) { team_.barrier(core, what); },
      [&] {
        if (core != 0) return;
        const double end = world_.now();
        updating_ += end - begin;
        hooks().watch.span({"update", begin, end});
      });
}

// That is for the rank that has the shard; the others wait until it has said what went wrong, and end with it.
void Trainer::explain(ComputePhase& phase, const data::Batch& batch, StepContext context) {
  const int shard = shard_not_finite(phase);
  if (const ShardRange own = own_shards(); shard >= own.first && shard < own.last)
    explain_not_finite(compute_, phase, batch, context, shard);
  Rank rank = 0;
  while (shard >= shards_of(rank, world_.size(), compute_.settings().shards).last) ++rank;
  wait_for_explanation(world_, rank);
}

// The loss was a number: so it is wrong arithmetic of one rank, or an overflow on the way back.
void Trainer::explain_gradient(const ComputePhase& phase, StepContext context) {
  std::int32_t bad = -1;  // the first parameter of this rank's own contribution that has no number
  const ShardRange own = own_shards();
  for (const PartialSum& p : compute_.partial_sums()) {
    if (p.first < own.first || p.first >= own.last) continue;
    for (std::size_t s = 0; s < phase.segments.size() && bad < 0; ++s)
      if (!kernels::all_finite(p.data + phase.segments[s].offset, phase.segments[s].size))
        bad = static_cast<std::int32_t>(s);
  }
  const std::vector<std::int32_t> all = team_.all_gather_struct(bad);
  // In common memory the sum lies where the first rank's contribution was.
  auto whose =
      std::ranges::find_if(all.begin() + (rank_sum_ ? 0 : 1), all.end(), [](std::int32_t b) { return b >= 0; });
  if (whose == all.end()) whose = all.begin();
  const auto rank = static_cast<Rank>(whose - all.begin());
  if (rank != world_.rank()) wait_for_explanation(world_, rank);
  const std::size_t offset = phase.segments[static_cast<std::size_t>(std::max(bad, 0))].offset;
  std::string name;
  for (const auto& e : table().entries())
    if (e.offset == offset) name = e.parameter.name;
  throw NotFinite(fmt::format(
      "step {}: the loss is a number, but the gradient of parameter '{}' is not, so the step is refused. Try "
      "a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm; if it happens on this "
      "machine only, do not trust it",
      context.step, name));
}

std::vector<std::span<const float>> Trainer::contributions() const {
  std::vector<std::span<const float>> all;
  for (const PartialSum& p : compute_.partial_sums()) all.emplace_back(p.data, compute_.table().floats());
  return all;
}

std::vector<StateSpan> Trainer::state() {
  std::vector<StateSpan> all;
  for (std::size_t p = 0; p < phases().size(); ++p) {
    ComputePhase& phase = *phases()[p];
    const std::string prefix = phases().size() > 1 ? phase.name + "." : "";
    for (const Update::Slot& slot : updates_[p]->slots()) all.push_back(as_state(prefix + slot.name, slot.values));
    if (!phase.carries.empty()) all.push_back(as_state(prefix + "carries", phase.carries.all()));
  }
  return all;
}

void Trainer::begin_reading() {
  if (!rank_sum_) return;  // all ranks have met at the end of the update
  std::vector<std::size_t> counts;
  for (const auto& phase : phases()) {
    if (phase->carries.empty()) continue;
    counts.clear();
    for (Rank r = 0; r < world_.size(); ++r) {
      const ShardRange range = shards_of(r, world_.size(), compute_.settings().shards);
      counts.push_back(phase->carries.of(range.first, range.last).size());
    }
    team_.all_gather(phase->carries.all(), counts);
  }
}

// Carried values are written from the start of a step on; everything else only after all ranks have met.
void Trainer::end_reading() {
  const bool carries = std::ranges::any_of(phases(), [](const auto& phase) { return !phase->carries.empty(); });
  if (carries && team_.ranks() > 1) cores_.run([&](int core) { team_.barrier(core, "a checkpoint"); });
}

void Trainer::broadcast_state() {
  if (world_.size() == 1) return;
  if (!rank_sum_) return cores_.run([&](int core) { team_.barrier(core, "the start"); });
  team_.broadcast(std::as_writable_bytes(parameters()));
  for (const StateSpan& s : state()) team_.broadcast(s.bytes);
}

RankTimes Trainer::times() const {
  const std::span<const double> waited = rank_sum_ ? rank_sum_->waited() : team_.waited();
  return {.compute = compute_.seconds(),
          .exchange = updating_ + (rank_sum_ ? rank_sum_->busy() : 0),
          .waiting_for = {waited.begin(), waited.end()},
          .bucket = rank_sum_ ? rank_sum_->longest_wait() : BucketWait{}};
}

std::size_t Trainer::planned_bytes() const {
  return team_.bytes() + (rank_sum_ ? total_.size_bytes() : 0) + compute_.arena_bytes();
}

}  // namespace echelon
