#pragma once
// What a model says about samples whose targets nobody knows: its prediction graph on batches, on all cores. The answer
// to a sample does not depend, to the bit, on the samples beside it, nor on how many there are or how many cores
// (models/answer_batch.h).

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "parallel/step/shard_runner.h"
#include "world/os/cores.h"

namespace echelon {

class Predictor {
 public:
  // The samples of `data` need the model's inputs among their fields. `output`: which of the prediction graph's. Model,
  // table, parameters and cores must outlive the predictor.
  Predictor(const models::Model& model, const ParameterTable& table, std::span<float> parameters, data::DatasetPtr data,
            std::string output, Cores& cores);

  // Numbers that it says of a sample.
  std::int64_t width() const { return width_; }

  // Answers to neighbouring samples, from `first` on: [count, width]. Valid during the call.
  struct Answers {
    std::uint64_t first = 0, count = 0;
    std::span<const float> numbers;
  };
  // `each` is called by many cores at once, with the index of its shard in the batch (less than shards()); `after` by
  // the caller's thread when all shards of a batch are done, with the samples done so far.
  void run(const std::function<void(int shard, const Answers&)>& each,
           const std::function<void(std::uint64_t done)>& after);
  int shards() const { return static_cast<int>(loader_.shards()); }

 private:
  std::string output_;
  data::Loader loader_;
  Cores& cores_;
  MicroBatchPlans plans_;
  std::vector<ShardRunner> runners_;  // by core
  std::int64_t width_;
};

}  // namespace echelon
