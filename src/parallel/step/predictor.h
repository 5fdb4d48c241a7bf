#pragma once
// What a model says about samples whose targets nobody knows: its prediction graph on batches, on all cores. A core
// makes its samples (decoding a picture often costs more than looking at it) in the memory that the graph reads. The
// answer to a sample does not depend, to the bit, on the samples beside it, nor on how many there are or how many cores
// (models/answer_batch.h).

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/decorators.h"
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
  int shards() const { return shards_; }

 private:
  std::string output_;
  data::DatasetPtr data_;
  Cores& cores_;
  MicroBatchPlans plans_;
  std::uint64_t batch_ = 0;           // samples at a time, on all cores
  int shards_ = 0;                    // of a batch
  std::vector<ShardRunner> runners_;  // by core
  std::vector<data::Sample> unread_;  // by core: fields that the graph does not read
  std::int64_t width_ = 0;
};

}  // namespace echelon
