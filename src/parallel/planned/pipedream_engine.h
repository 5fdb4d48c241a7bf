#pragma once
// PipeDream without flush (Harlap et al., 2018; Narayanan et al., 2019): a pipeline that never runs empty. Stage k of p
// begins p - k steps before the first of them comes back; then it runs one step forward, one backward, and updates its
// weights at once, without waiting for other stages. The result is a function of recipe and plan, and not that of exact
// training: step t's gradient on stage k is of weights that s updates are missing from,
//
//   s = p - k - 1     sync = "stash": a forward pass reads the stage's newest weights
//   s = p - 1         sync = "vertical": all stages read the weights after the same update
//
// and its backward pass reads the weights that its forward pass read: a stage saves s older versions. Replicas of a
// stage sum their gradients before they update. Norms (clipping) are those of a stage's own parameters.
//
// At the end of run() the pipeline is drained: evaluations and checkpoints see a model whose stages have done the same
// steps, and a run that is resumed there goes on as if it had not been stopped.

#include "parallel/planned/planned_engine.h"
#include "parallel/planned/step_control.h"

namespace echelon {

class PipeDreamEngine final : public PlannedEngine {
 public:
  PipeDreamEngine(const EngineSettings& settings, Team& team);  // as PlannedEngine
  Reached run(const StepRange& range) override;

 private:
  struct UnderWay {  // a step between its forward and its backward pass here
    std::int64_t samples = 0;
    std::vector<std::int64_t> shard_samples;
    double slowness = 1;
  };
  UnderWay& under_way(std::int64_t step) { return steps_[static_cast<std::size_t>(step) % steps_.size()]; }
  void run_forward(const StepRange& range, std::int64_t step);
  void run_backward(const StepRange& range, std::int64_t step);
  void run_passes(Pass pass, const StepRange& range, std::int64_t step, const data::Batch& batch);
  void update_stage(const StepRange& range, std::int64_t step);
  void report(const StepRange& range, std::int64_t step);

  StageCompute& stage_;
  const int staleness_;
  std::vector<UnderWay> steps_;
  StepControl control_;
  const data::Batch* batch_ = nullptr;  // the last that was read
  ShardLoss loss_;                      // of the last step that went forward
  std::int64_t updates_ = 0;            // since run() began: the version of the newest weights
  bool stop_ = false;                   // some rank asks to
};

}  // namespace echelon
