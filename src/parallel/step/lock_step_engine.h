#pragma once
// An engine whose ranks do every step together and know its result at once: exact training, of a whole model on every
// rank (parallel/engine.cpp) or of a split one (parallel/planned/planned_engine.h).

#include "parallel/engine.h"

namespace echelon {

class LockStepEngine : public Engine {
 public:
  LockStepEngine(const EngineSettings& settings, Team& team) : settings_(settings), team_(team), world_(team.world()) {}

  Reached run(const StepRange& range) override {
    for (std::int64_t step = range.from; step < range.to; ++step)
      if (run_step(range, step)) return {step + 1, true};
    return {range.to, false};
  }
  double bytes_sent() override {
    double sum = 0;
    for (const double sent : team_.all_gather_struct(sent_)) sum += sent;
    return world_.size() == 1 || world_.sent() ? sum : -1;
  }

 protected:
  // The computations of this rank take `slowness` times as long as they do: an experiment.
  virtual StepResult do_step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop,
                             double slowness) = 0;

  EngineSettings settings_;
  Team& team_;
  World& world_;
  double sent_ = 0;  // bytes by this rank in steps

 private:
  // True if some rank asks to stop after it.
  bool run_step(const StepRange& range, std::int64_t step) {
    const double started = world_.now();
    world_.set_status("reading the batch");
    const data::Batch& batch = range.loader->at(static_cast<std::uint64_t>(step));
    const double loaded = world_.now();
    const auto before = world_.sent();
    const StepResult result =
        do_step(static_cast<std::uint64_t>(step), range.lr(step), batch, range.asks_to_stop(),
                slowness(settings_.stragglers, world_.rank(), world_.size(), step, settings_.seed));
    if (before) sent_ += static_cast<double>(world_.sent()->bytes - before->bytes);
    if (range.on_span) {
      if (loaded - started > 1e-4) range.on_span({"wait for input", started, loaded});
      range.on_span({"step", loaded, world_.now()});
    }
    // All ranks send about the same; bytes_sent() has what they sent exactly.
    range.on_progress({step + 1, result, before ? sent_ * world_.size() : -1});
    return world_.size() == 1 ? range.asks_to_stop() : result.stop;
  }
};

}  // namespace echelon
