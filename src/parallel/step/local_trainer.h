#pragma once
// Trains one replica of a model on the cores of one rank, without knowing of other ranks
// (parallel/step/replica_trainer.h). For models with one phase. Allocates nothing in a step once every size of
// micro-batch has occurred. One thread drives it; the cores work inside.

#include <functional>
#include <memory>
#include <vector>

#include "base/state.h"
#include "optim/optim.h"
#include "parallel/step/replica_trainer.h"
#include "parallel/step/shard_compute.h"

namespace echelon {

class LocalTrainer final : public ReplicaTrainer {
 public:
  // Model, world and cores must outlive it.
  LocalTrainer(const ComputeSettings& settings, const std::function<Optim()>& make_optim, World& world, Cores& cores);

  StepResult compute(std::uint64_t step, const data::Batch& batch, double mean_over) override;
  std::span<float> gradient() override { return total_; }
  void update(std::uint64_t step, double lr) override;
  void move_statistics() override { update_->move_statistics(); }

  ComputeHooks& hooks() override { return compute_.hooks(); }
  void send_buckets(std::size_t least_bytes, std::function<void(std::size_t bucket)> ready) override;
  const std::vector<Bucket>& buckets() const override { return phase().buckets; }

  const std::vector<TrainedSpan>& segments() const override { return phase().segments; }
  std::vector<ThinProduct> thin_products() override;
  std::vector<Range> reading_order() override;
  std::vector<ForwardNode> time_forward() override;
  const ParameterTable& table() const override { return compute_.table(); }
  std::span<float> parameters() override { return compute_.parameters(); }
  std::vector<StateSpan> state() override;

  int shards() const { return compute_.settings().shards; }
  double flops_per_sample() override { return compute_.flops_per_sample(); }
  double waited_for_weights() const override { return compute_.waited_for_weights(); }

 private:
  ComputePhase& phase() const { return *compute_.phases().front(); }

  World& world_;
  Cores& cores_;
  std::vector<Buffer> memory_;
  ShardCompute compute_;
  std::span<float> total_;
  PartialSum whole_;  // the sum itself
  std::unique_ptr<Update> update_;
};

}  // namespace echelon
