#pragma once
// Exact data parallelism in which ranks take micro-batches when they are free (plan key `tasks=free`; after Litz, Qiao
// et al. 2018): a rank that is slow does fewer of them. The bits do not depend on who did which: contributions are
// summed in the fixed tree, node by node. After the last micro-batch every rank says which ones it has taken; then each
// owns a range of the elements, gets all nodes' sums of it, and hands the total to the others.
//
// Every rank reads the samples of the whole batch, because it may get any of them. Values that are carried from step to
// step (streams of text) go from whoever did a micro-batch to all.

#include "parallel/planned/micro_tasks.h"
#include "parallel/planned/planned_engine.h"

namespace echelon {

class MicroTaskEngine final : public PlannedEngine {
 public:
  MicroTaskEngine(const EngineSettings& settings, Team& team);  // as PlannedEngine; settings.plan->tasks is "free"

  Reached run(const StepRange& range) override;
  std::vector<Figure> figures() override;  // how many micro-batches each rank has done

 private:
  void run_tasks(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, double slowness) override;
  void share_losses() override;
  void sum_over_ranks() override;
  void share_carries();

  StageCompute& stage_;
  Group& group_;                       // of all ranks
  std::unique_ptr<MicroTasks> tasks_;  // during run()
  TakenSums sums_;
  std::vector<int> taken_;              // by this rank, in this step
  std::vector<std::int32_t> taken_by_;  // by shard: the rank
  std::vector<std::int32_t> marks_;     // the same of every rank: 1 where it has taken the shard
  std::vector<ShardLoss> all_losses_;   // the same
  std::vector<std::vector<float>> pieces_;
  std::uint32_t operation_ = 0;
  double done_ = 0;
};

}  // namespace echelon
