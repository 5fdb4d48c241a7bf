#pragma once
// Who does which micro-batch of a step, where that is decided while the step runs (plan key `tasks=free`; Litz's
// micro-tasks, Qiao et al. 2018). Every rank begins with the micro-batches that it would have in any case, one after
// the other; a rank that has none left takes over the last one of the rank that has most left. The list is on rank 0,
// which answers requests in a task of its own. All ranks make one and close() it; one thread uses it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/shard_tree.h"
#include "parallel/team/message_wait.h"
#include "parallel/team/team.h"
#include "world/mailbox/mailbox.h"

namespace echelon {

// The micro-batches of one step that nobody has begun. Plain data.
class TaskList {
 public:
  TaskList(int ranks, int shards);
  // The next one for a rank; -1: there is none left.
  int take(int rank);

 private:
  std::vector<ShardRange> left_;  // by rank
};

class MicroTasks {
 public:
  MicroTasks(Team& team, int shards);
  ~MicroTasks();

  // This rank's next micro-batch of the step, or none. Ranks ask for no step before all have ended the one before.
  std::optional<int> next(std::int64_t step);
  void close();  // collective

 private:
  class Scheduler;
  World& world_;
  Mailbox mailbox_;
  MessageWait wait_;
  std::unique_ptr<Scheduler> scheduler_;  // on rank 0
};

// The sums over the micro-batches that a rank has taken, each over the leaves of one node of the fixed tree
// (collective/shard_tree.h). Memory is taken when a sum is needed for the first time.
class TakenSums {
 public:
  TakenSums(int shards, std::size_t floats) : shards_(shards), floats_(floats) {}

  void start_step() { sums_.clear(), used_.clear(); }
  void add(int shard, std::span<const float> contribution);
  std::span<const PartialSum> sums() const { return sums_; }  // in the order of shards
  std::size_t bytes() const;

  // The nodes that add() makes of these shards, in whatever order they come.
  static std::vector<ShardRange> nodes_of(int shards, std::span<const int> taken);

 private:
  float* free_memory();

  int shards_;
  std::size_t floats_;
  std::vector<PartialSum> sums_;
  std::vector<float*> used_;
  std::vector<std::vector<float>> memory_;
};

}  // namespace echelon
