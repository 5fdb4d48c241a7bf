#include "parallel/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/planned/ampnet_engine.h"
#include "parallel/planned/micro_task_engine.h"
#include "parallel/planned/pipedream_engine.h"
#include "parallel/replica.h"
#include "parallel/sandblaster/parts.h"
#include "parallel/step/lock_step_engine.h"
#include "parallel/step/trainer.h"
#include "plan/spec.h"

namespace echelon {

namespace {

class ExactEngine final : public LockStepEngine {
 public:
  ExactEngine(const EngineSettings& s, Team& team)
      : LockStepEngine(s, team),
        trainer_({.model = s.model,
                  .fields = s.fields,
                  .shards = s.shards,
                  .seed = s.seed,
                  .largest_shard = s.largest_shard,
                  .start = s.start},
                 s.make_optim, team) {}

  const ParameterTable& table() const override { return trainer_.table(); }
  std::span<float> model() override { return trainer_.parameters(); }
  std::span<const float> gradient() override { return trainer_.gradient(); }
  std::vector<std::span<const float>> contributions() override { return trainer_.contributions(); }
  std::vector<StateSpan> state() override { return trainer_.state(); }
  void gather() override { trainer_.begin_reading(); }
  void end_gather() override { trainer_.end_reading(); }
  void scatter() override { trainer_.broadcast_state(); }

  void adapt(data::LoaderOptions& options) const override {
    const ShardRange own = trainer_.own_shards();
    options.shards = static_cast<std::uint64_t>(settings_.shards);
    options.own = data::IndexRange{static_cast<std::uint64_t>(own.first), static_cast<std::uint64_t>(own.count())};
  }
  int working_ranks() const override { return std::min(world_.size(), settings_.shards); }
  double flops_per_sample() override { return trainer_.flops_per_sample(); }
  void watch(Watch watch) override { trainer_.hooks().watch = std::move(watch); }
  RankTimes times() const override { return trainer_.times(); }
  std::vector<Figure> figures() override;

 private:
  StepResult do_step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop,
                     double slowness) override {
    trainer_.hooks().slowness = slowness;
    for (const BitFlip::Of of : {BitFlip::gradient, BitFlip::nan})
      if (flips(settings_.flips, world_.rank(), static_cast<std::int64_t>(step) + 1, of)) trainer_.spoil_gradient(of);
    return trainer_.step(step, lr, batch, asks_to_stop);
  }

  Trainer trainer_;
};

// What ranks allocate: each of its own, or all of them together where they share memory.
std::vector<Figure> ExactEngine::figures() {
  constexpr int most_ranks = 64;
  std::vector<Figure> figures;
  if (world_.size() > most_ranks) return figures;
  const bool in_common = team_.ranks() > 1;
  double all = static_cast<double>(in_common ? team_.bytes() : 0);
  for (const std::size_t own : team_.all_gather_struct(trainer_.planned_bytes() - (in_common ? team_.bytes() : 0))) {
    all += static_cast<double>(own);
    if (!in_common) figures.emplace_back(fmt::format("bytes_rank_{}", figures.size()), static_cast<double>(own));
  }
  if (in_common) figures.emplace_back("bytes_in_common", all);
  return figures;
}

}  // namespace

std::unique_ptr<Engine> make_exact_engine(const EngineSettings& settings, Team& team) {
  return std::make_unique<ExactEngine>(settings, team);
}

std::unique_ptr<Engine> make_engine(EngineSettings settings, std::uint64_t largest_batch,
                                    const Composition* composition, Team& team) {
  if (composition && composition->exchange->traits().coordinates) {
    settings.shards = 1, settings.largest_shard = static_cast<std::int64_t>(largest_batch);
    return std::make_unique<SandblasterEngine>(settings, sandblaster_settings(*composition), team);
  }
  const bool replicas = trains_replicas(composition, team.world().size());
  const int each = settings.plan ? settings.plan->ranks_of_replica() : 1, parts = team.world().size() / each;
  if (replicas) settings.shards = std::max(1, settings.shards / parts);  // of each replica's part
  const std::int64_t shards = std::int64_t{settings.shards} * (replicas ? parts : 1);
  settings.largest_shard = (static_cast<std::int64_t>(largest_batch) + shards - 1) / shards;
  if (replicas) return std::make_unique<Replica>(settings, *composition, team);
  if (settings.plan && settings.plan->is_message_driven()) return std::make_unique<AmpnetEngine>(settings, team);
  if (settings.plan && settings.plan->has_own_result()) return std::make_unique<PipeDreamEngine>(settings, team);
  if (settings.plan && settings.plan->frees_tasks()) return std::make_unique<MicroTaskEngine>(settings, team);
  if (settings.plan && settings.plan->splits_model()) return std::make_unique<PlannedEngine>(settings, team);
  return make_exact_engine(settings, team);
}

}  // namespace echelon
