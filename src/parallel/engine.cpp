#include "parallel/engine.h"

#include <algorithm>

#include "parallel/replica.h"
#include "parallel/step/trainer.h"

namespace echelon {

namespace {

class ExactEngine final : public Engine {
 public:
  ExactEngine(const EngineSettings& s, Team& team)
      : settings_(s),
        team_(team),
        world_(team.world()),
        trainer_({.model = s.model,
                  .fields = s.fields,
                  .shards = s.shards,
                  .seed = s.seed,
                  .largest_slice = s.largest_slice,
                  .start = s.start},
                 s.make_optim, team) {}

  Reached run(const StepRange& range) override {
    for (std::int64_t step = range.from; step < range.to; ++step)
      if (run_step(range, step)) return {step + 1, true};
    return {range.to, false};
  }

  const ParameterTable& table() const override { return trainer_.table(); }
  std::span<float> model() override { return trainer_.parameters(); }
  std::vector<StateSpan> state() override { return trainer_.state(); }
  void gather() override { trainer_.begin_reading(); }
  void end_gather() override { trainer_.end_reading(); }
  void scatter() override { trainer_.broadcast_state(); }

  void adapt(data::LoaderOptions& options) const override {
    const ShardRange own = trainer_.own_shards();
    options.shards = static_cast<std::uint64_t>(settings_.shards);
    options.own = data::Slice{static_cast<std::uint64_t>(own.first), static_cast<std::uint64_t>(own.count())};
  }
  int working_ranks() const override { return std::min(world_.size(), settings_.shards); }
  double flops_per_sample() override { return trainer_.flops_per_sample(); }
  void watch(Watch watch) override { trainer_.hooks().watch = std::move(watch); }

  RankTimes times() const override { return trainer_.times(); }
  double bytes_sent() override {
    double sum = 0;
    for (const double sent : team_.all_gather_struct(sent_)) sum += sent;
    return world_.size() == 1 || world_.sent() ? sum : -1;
  }

 private:
  // True if some rank asks to stop after it.
  bool run_step(const StepRange& range, std::int64_t step) {
    const double started = world_.now();
    const data::Batch& batch = range.loader->at(static_cast<std::uint64_t>(step));
    const double loaded = world_.now();
    trainer_.hooks().slowness = slowness(settings_.stragglers, world_.rank(), world_.size(), step, settings_.seed);
    const auto before = world_.sent();
    const StepResult result =
        trainer_.step(static_cast<std::uint64_t>(step), range.lr(step), batch, range.asks_to_stop());
    if (before) sent_ += static_cast<double>(world_.sent()->bytes - before->bytes);
    if (range.on_span) {
      if (loaded - started > 1e-4) range.on_span("wait for input", started, loaded);
      range.on_span("step", loaded, world_.now());
    }
    // All ranks send about the same; bytes_sent() has what they sent exactly.
    range.on_progress({step + 1, result, before ? sent_ * world_.size() : -1});
    return world_.size() == 1 ? range.asks_to_stop() : result.stop;
  }

  EngineSettings settings_;
  Team& team_;
  World& world_;
  Trainer trainer_;
  double sent_ = 0;  // bytes by this rank in steps
};

}  // namespace

std::unique_ptr<Engine> make_exact_engine(const EngineSettings& settings, Team& team) {
  return std::make_unique<ExactEngine>(settings, team);
}

std::unique_ptr<Engine> make_engine(EngineSettings settings, std::uint64_t largest_batch,
                                    const Composition* composition, Team& team) {
  const int workers = team.world().size();
  const bool replicas = composition && workers > 1;
  if (replicas) settings.shards = std::max(1, settings.shards / workers);  // of each worker's part
  const std::int64_t slices = std::int64_t{settings.shards} * (replicas ? workers : 1);
  settings.largest_slice = (static_cast<std::int64_t>(largest_batch) + slices - 1) / slices;
  if (replicas) return std::make_unique<Replica>(settings, *composition, team);
  return make_exact_engine(settings, team);
}

}  // namespace echelon
