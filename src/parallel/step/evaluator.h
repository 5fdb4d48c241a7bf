#pragma once
// Loss and accuracy of a model on a whole data set, on the cores of all ranks. What a slice is depends on the data
// alone, and slices are summed in a fixed order, so the figures are the same bits for any number of cores and ranks.
// Only reads the parameters.

#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "parallel/step/shard_compute.h"
#include "parallel/team/team.h"

namespace echelon {

struct Evaluation {
  double loss = 0;       // mean over all terms
  double accuracy = -1;  // share of terms predicted right; negative if that has no meaning for the model
  std::int64_t samples = 0, terms = 0;
};

class Evaluator {
 public:
  // `parameters` is a flat buffer of `table`; model, table and parameters must outlive the evaluator.
  Evaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters, data::DatasetPtr data,
            std::int64_t batch, Team& team);

  // One pass over the data; collective. With one rank only: `each` (may be empty) is given every slice's executor after
  // it ran, in the order of samples and one at a time; `keep_going` (may be empty) is asked between batches, and if it
  // says no, the result is that of the batches so far.
  using Look = std::function<void(const data::Batch&, int shard, Executor&)>;
  Evaluation run(const Look& each = {}, const std::function<bool()>& keep_going = {});

 private:
  void run_batch(const data::Batch& batch, std::uint64_t step, std::span<ShardLoss> losses, const Look& each);

  const models::Model& model_;
  data::Loader loader_;
  int shards_;
  Team& team_;
  std::int64_t terms_per_sample_;
  SlicePlans plans_;
  CarryStore carries_;
  std::vector<ShardRunner> runners_;  // by core
};

}  // namespace echelon
