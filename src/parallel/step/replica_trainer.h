#pragma once
// A replica of a model, as its exchange sees it. A step has two halves, so that an exchange can read or change the
// gradient in between:
//
//   compute   forward and backward; the gradient is the sum over the batch's shards
//   update    the optimizer moves the weights
//
// A whole model on the cores of one rank (parallel/step/local_trainer.h), or this rank's stage of a replica that is
// split over several (parallel/planned/split_trainer.h): then parameters, gradient, table and segments are the stage's,
// and the ranks of the replica call everything that computes together.
//
// One thread drives it.

#include <functional>
#include <span>
#include <vector>

#include "base/state.h"
#include "data/loader.h"
#include "graph/program.h"
#include "optim/update.h"
#include "parallel/step/buckets.h"
#include "parallel/step/compute_hooks.h"
#include "parallel/step/node_actions.h"
#include "parallel/step/step_result.h"

namespace echelon {

class ReplicaTrainer {
 public:
  virtual ~ReplicaTrainer() = default;

  // Leaves in gradient() the sum over the batch's samples, divided by `mean_over`. NotFinite
  // (parallel/step/not_finite.h) if the loss is not a number.
  virtual StepResult compute(std::uint64_t step, const data::Batch& batch, double mean_over) = 0;
  virtual std::span<float> gradient() = 0;
  virtual void update(std::uint64_t step, double lr) = 0;
  virtual void move_statistics() = 0;  // instead of `update`, where the weights come from elsewhere

  // Hooks of `compute`; for buckets use send_buckets().
  virtual ComputeHooks& hooks() = 0;
  // Cuts the gradient into buckets of at least that many bytes, in the order in which they become complete. `ready` is
  // called in compute() once for each, with its index, by any core, while others still compute. Empty: nobody is
  // called.
  virtual void send_buckets(std::size_t least_bytes, std::function<void(std::size_t bucket)> ready) = 0;
  virtual const std::vector<Bucket>& buckets() const = 0;

  virtual const std::vector<TrainedSpan>& segments() const = 0;  // what is trained, by offset
  virtual std::vector<ThinProduct> thin_products() = 0;          // weights whose gradient can be had as factors
  virtual std::vector<Range> reading_order() = 0;  // parameters in the order in which forward reads them first
  // The forward pass, with the seconds that each node takes here: measured now. Where stages share it, only its order.
  virtual std::vector<ForwardNode> time_forward() = 0;
  virtual const ParameterTable& table() const = 0;
  virtual std::span<float> parameters() = 0;
  // An exchange has read that range of the gradient, or written it into the parameters: where these lie in files, it need
  // not be in memory now.
  virtual void let_go(Range) {}
  virtual std::vector<StateSpan> state() = 0;  // the optimizer's, and carried values

  virtual double flops_per_sample() = 0;
  virtual double waited_for_weights() const = 0;  // seconds of core 0 in before_reading
};

}  // namespace echelon
