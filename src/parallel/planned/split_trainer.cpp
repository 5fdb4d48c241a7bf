#include "parallel/planned/split_trainer.h"

#include "kernels/vector.h"
#include "parallel/step/node_actions.h"
#include "world/os/file_memory.h"

namespace echelon {

namespace {

PlanSpec of_one_replica(PlanSpec plan) {
  plan.data = 1;
  return plan;
}

std::vector<Rank> ranks_of_replica(const PlanSpec& plan, int replica) {
  std::vector<Rank> ranks;
  for (int place = 0; place < plan.ranks_of_replica(); ++place) ranks.push_back(plan.rank_at(replica, place));
  return ranks;
}

std::vector<Rank> ranks_with_stage(const PlanSpec& plan, int place) {
  std::vector<Rank> ranks;
  for (int replica = 0; replica < plan.data; ++replica) ranks.push_back(plan.rank_at(replica, place));
  return ranks;
}

EngineSettings with(EngineSettings settings, const PlanSpec& plan, const std::function<Optim()>& make_optim) {
  settings.plan = &plan;
  settings.make_optim = make_optim;
  return settings;
}

constexpr int replica_world = 1, stage_world = 2;  // numbers of sub-worlds

}  // namespace

SplitTrainer::SplitTrainer(const EngineSettings& s, const std::function<Optim()>& make_optim, Team& everyone)
    : everyone_(everyone),
      seed_(s.seed),
      plan_(of_one_replica(*s.plan)),
      replica_(s.plan->replica_of(everyone.world().rank())),
      inside_(everyone, ranks_of_replica(*s.plan, replica_), replica_world),
      peers_(everyone, ranks_with_stage(*s.plan, s.plan->place_of(everyone.world().rank())), stage_world),
      engine_(with(s, plan_, make_optim), inside_.team()),
      stage_(engine_.only_stage()),
      segments_(engine_.segments_here()) {}

SplitTrainer::Agreed SplitTrainer::agree(const Agreed& said) {
  struct {
    std::int64_t reached, step, part, any;
  } words{said.reached, said.item ? said.item->step : 0, said.item ? said.item->part : 0, said.item ? 1 : 0};
  inside_.team().broadcast(std::as_writable_bytes(std::span(&words, 1)));
  Agreed agreed{.item = {}, .reached = words.reached};
  if (words.any != 0) agreed.item = WorkItem{words.step, static_cast<int>(words.part)};
  return agreed;
}

StepResult SplitTrainer::compute(std::uint64_t step, const data::Batch& batch, double /*mean_over*/) {
  if (hooks_.before_reading) {
    const double began = everyone_.world().now();
    for (const Range& r : reading_order()) hooks_.before_reading(r);
    waited_for_weights_ += everyone_.world().now() - began;
  }
  engine_.copy_from_owners();
  engine_.watch(hooks_.watch);
  // Parts of one global batch have random streams of their own.
  const std::uint64_t seed = seed_ + batch.part() * 0x9E3779B97F4A7C15ull;
  const StepResult result = engine_.compute(step, batch, seed, asks_to_stop_, hooks_.slowness);
  if (batch.samples() == 0)  // nothing was seen: statistics stay where they are
    for (const TrainedSpan& s : segments_)
      if (s.statistic) kernels::copy(gradient().data() + s.offset, parameters().data() + s.offset, s.size);
  if (hooks_.bucket_complete)
    for (std::size_t b = 0; b < buckets_.size(); ++b) hooks_.bucket_complete(b);
  return result;
}

// Stages have their gradients when the last micro-batch is through, all at once.
void SplitTrainer::send_buckets(std::size_t least_bytes, std::function<void(std::size_t)> ready) {
  buckets_ = fuse_pieces(ready_pieces(stage_.graph(), table(), 1, 0), least_bytes);
  hooks_.bucket_complete = std::move(ready);
}

std::vector<Range> SplitTrainer::reading_order() { return echelon::reading_order(stage_.graph(), table()); }

std::vector<ForwardNode> SplitTrainer::time_forward() {
  std::vector<ForwardNode> list;
  for (const Range& r : reading_order()) {
    ForwardNode node{.reads = {r}};
    if (!list.empty()) node.after.push_back(list.size() - 1);
    list.push_back(std::move(node));
  }
  return list;
}

std::vector<StateSpan> SplitTrainer::state() {
  std::vector<StateSpan> all;
  for (const Update::Slot& slot : stage_.update().slots()) all.push_back(as_state(slot.name, slot.values));
  if (!stage_.carries().empty()) all.push_back(as_state("carries", stage_.carries().all()));
  return all;
}

void SplitTrainer::let_go(Range range) {
  if (!plan_.offloads_parameters()) return;
  for (const std::span<float> values : {stage_.parameters(), stage_.gradient()})
    FileMemory::let_go(std::as_bytes(values.subspan(range.begin, range.count())));
}

std::span<float> SplitTrainer::model() {
  return model_is_everywhere() || everyone_.world().rank() == 0 ? engine_.model() : std::span<float>{};
}

// The first replica's ranks have a stage each.
void SplitTrainer::read_model(std::span<float> of_stage) {
  if (replica_ == 0) engine_.collect_model([&](StageCompute&) { return WholeModel::Held{of_stage, 0}; });
  if (model_is_everywhere()) everyone_.broadcast(std::as_writable_bytes(engine_.model()));
}

}  // namespace echelon
