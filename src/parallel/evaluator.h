#pragma once
// Loss and accuracy of a model on a whole data set, on the cores of one worker. Slices are summed in a fixed order, so
// the figures are the same bits for any number of cores. Reads the parameters, changes nothing.

#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "parallel/shard_runner.h"
#include "world/cores.h"

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
            std::int64_t batch, Cores& cores);

  // One pass over the data. `each` (may be empty) sees every shard's executor after it ran, in the order of samples
  // and one at a time: to look at outputs. `keep_going` is asked between batches; an evaluation cut short is of what
  // was seen.
  using Look = std::function<void(const data::Batch&, int shard, Executor&)>;
  Evaluation run(const Look& each = {}, const std::function<bool()>& keep_going = {});

 private:
  const models::Model& model_;
  data::Loader loader_;
  int shards_;
  Cores& cores_;
  std::int64_t terms_per_sample_;
  SlicePlans plans_;
  CarryStore carries_;
  std::vector<ShardRunner> runners_;
  std::vector<double> loss_, correct_;
};

}  // namespace echelon
