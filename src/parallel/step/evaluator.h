#pragma once
// Loss, accuracy and other metrics of a model on a whole data set, on the cores of all ranks. What a shard is depends
// on the data alone, and shards are summed in a fixed order, so the figures are the same bits for any number of cores
// and ranks. Only reads the parameters.

#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "parallel/metrics/tally.h"
#include "parallel/step/shard_compute.h"
#include "parallel/team/team.h"

namespace echelon {

struct Evaluation {
  double loss = 0;       // mean over all terms
  double accuracy = -1;  // share of terms predicted right; negative if that has no meaning for the model
  std::int64_t samples = 0, terms = 0;
  MetricValues metrics = {};  // by name, those that were asked for; accuracy too if it was
};

// Evaluations read so many samples at a time: the same for all, because it decides about the sums.
inline constexpr std::uint64_t evaluation_batch = 256;

class Evaluator {
 public:
  // `parameters` is a flat buffer of `table`; model, table and parameters must outlive the evaluator.
  Evaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters, data::DatasetPtr data,
            std::int64_t batch, Team& team, std::vector<Metric> metrics = {});

  // One pass over the data; collective. With one rank only: `each` (may be empty) is given every shard's executor after
  // it ran, in the order of samples and one at a time; `keep_going` (may be empty) is asked between batches, and if it
  // says no, the result is that of the batches so far.
  using Look = std::function<void(const data::Batch&, int shard, Executor&)>;
  Evaluation run(const Look& each = {}, const std::function<bool()>& keep_going = {});

 private:
  struct Tallies {                     // of this rank
    std::vector<double> sums, scores;  // of all shards and samples of all ranks, rank after rank
    std::vector<std::int64_t> counts;  // of this rank; after gathering of all of them
    std::vector<std::vector<std::int64_t>> by_core;
    std::size_t next_sum = 0, next_score = 0;     // where this rank's next shard goes
    std::vector<std::size_t> sums_of, scores_of;  // by rank
  };
  Tallies start_tallies();
  void gather_tallies(Tallies& tallies);
  void run_batch(const data::Batch& batch, std::uint64_t step, std::span<ShardLoss> losses, Tallies& tallies,
                 const Look& each);
  std::uint64_t samples_of(Rank rank, std::uint64_t step) const;

  const models::Model& model_;
  data::Loader loader_;
  int shards_;
  Team& team_;
  MetricTally tally_;
  std::size_t target_field_;  // whose values the metrics compare predictions with
  const char* predicted_;     // the output that has them
  std::int64_t terms_per_sample_;
  MicroBatchPlans plans_;
  CarryStore carries_;
  std::vector<ShardRunner> runners_;  // by core
};

}  // namespace echelon
