#pragma once
// Trains one replica of a model on the cores of one rank, without knowing of other ranks. A step has two halves, so
// that an exchange can read or change the gradient in between:
//
//   compute   forward and backward; the gradient is the sum over the batch's shards
//   update    the optimizer moves the weights
//
// For models with one phase. Allocates nothing in a step once every size of slice has occurred. One thread drives it;
// the cores work inside.

#include <functional>
#include <memory>
#include <vector>

#include "base/state.h"
#include "optim/optim.h"
#include "parallel/step/shard_compute.h"
#include "parallel/step/step_result.h"

namespace echelon {

class LocalTrainer {
 public:
  // Model, world and cores must outlive it.
  LocalTrainer(const ComputeSettings& settings, const std::function<Optim()>& make_optim, World& world, Cores& cores);

  // Leaves in gradient() the sum over the batch's samples, divided by `mean_over`. NotFinite
  // (parallel/step/not_finite.h) if the loss is not a number.
  StepResult compute(std::uint64_t step, const data::Batch& batch, double mean_over);
  std::span<float> gradient() { return total_; }
  void update(std::uint64_t step, double lr);
  void move_statistics() { update_->move_statistics(); }  // instead of `update`, where the weights come from elsewhere

  // Hooks of `compute`; for buckets use send_buckets().
  ComputeHooks& hooks() { return compute_.hooks(); }
  // Cuts the gradient into buckets of at least that many bytes, in the order in which they become complete. `ready` is
  // called in compute() once for each, with its index, by any core, while others still compute. Empty: nobody is
  // called.
  void send_buckets(std::size_t least_bytes, std::function<void(std::size_t bucket)> ready);
  const std::vector<Bucket>& buckets() const { return phase().buckets; }

  const std::vector<TrainedSpan>& segments() const { return phase().segments; }  // what is trained, by offset
  std::vector<ThinProduct> thin_products();  // weights whose gradient can be had as factors
  std::vector<Range> reading_order();        // parameters in the order in which forward reads them first
  const ParameterTable& table() const { return compute_.table(); }
  std::span<float> parameters() { return compute_.parameters(); }
  std::vector<StateSpan> state();  // the optimizer's, and carried values

  int shards() const { return compute_.settings().shards; }
  double flops_per_sample() { return compute_.flops_per_sample(); }
  double waited_for_weights() const { return compute_.waited_for_weights(); }  // seconds of core 0 in before_reading

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
