#pragma once
// Runs one graph of a model on the shards of a batch. `MicroBatchPlans` holds the graph compiled for every size of
// micro-batch that occurs (the last batch of an epoch is smaller); `ShardRunner` is one core's memory and bound kernels
// for it.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collective/shard_tree.h"
#include "data/loader.h"
#include "graph/program.h"

namespace echelon {

// Compiled graphs by number of samples, shared by all cores. prepare() from one thread; at() from many.
class MicroBatchPlans {
 public:
  explicit MicroBatchPlans(std::function<Graph(std::int64_t samples)> make) : make_(std::move(make)) {}
  void prepare(std::int64_t samples);  // compiles it if it is not there yet; nothing for none
  const Plan& at(std::int64_t samples) const { return *plans_.at(samples); }

 private:
  std::function<Graph(std::int64_t)> make_;
  std::map<std::int64_t, std::unique_ptr<const Plan>> plans_;
};

// The values that flow from step to step (graph/graph.h, Carry), one set for each shard: shards own them, not cores.
class CarryStore {
 public:
  // `graph` is that of the largest micro-batch.
  CarryStore(const Graph& graph, int shards);
  // On memory of that many bytes, given by the caller.
  CarryStore(const Graph& graph, int shards, const std::function<std::span<std::byte>(std::size_t bytes)>& memory);
  bool empty() const { return bytes_per_shard_ == 0; }
  void reset(int first, int last);  // those of the shards [first, last)
  std::span<std::byte> of(int shard) { return of(shard, shard + 1); }
  std::span<std::byte> of(int first, int last);
  std::span<std::byte> all() { return memory_; }

 private:
  std::size_t bytes_per_shard_ = 0;
  Buffer own_;
  std::span<std::byte> memory_;
};

// One core's executors. Belongs to that core's thread.
class ShardRunner {
 public:
  ShardRunner(const MicroBatchPlans& plans, const ParameterTable& table, std::span<float> parameters,
              std::span<float> contributions, std::shared_ptr<std::vector<Buffer>> arenas)
      : plans_(plans),
        table_(table),
        parameters_(parameters),
        contributions_(contributions),
        arenas_(std::move(arenas)) {}

  // Loads the shard's samples and runs the graph on them. `carries` (may be null) are read and written; `execute` (may
  // be empty) is called instead of Executor::run.
  Executor& run(const data::Batch& batch, const std::vector<data::Field>& fields, const StepContext& step,
                CarryStore* carries, const std::function<void(Executor&)>& execute = {});
  // The executor for so many samples, bound on first use, with the shard's samples in it: for profiles and
  // post-mortems.
  Executor& load(const data::Batch& batch, const std::vector<data::Field>& fields, int shard, CarryStore* carries);
  Executor& executor(std::int64_t samples);
  std::size_t arena_bytes() const;

 private:
  const MicroBatchPlans& plans_;
  const ParameterTable& table_;
  std::span<float> parameters_, contributions_;
  std::shared_ptr<std::vector<Buffer>> arenas_;  // phases of one core take turns in the same memory
  std::map<std::int64_t, std::unique_ptr<Executor>> executors_;
};

// The shards that a core of a rank runs: neighbours, so that it can fold most of their sum by itself.
inline ShardRange shards_of(int rank, int ranks, int core, int cores, int shards) {
  const ShardRange mine = shards_of(rank, ranks, shards), part = shards_of(core, cores, mine.last - mine.first);
  return {mine.first + part.first, mine.first + part.last};
}

}  // namespace echelon
