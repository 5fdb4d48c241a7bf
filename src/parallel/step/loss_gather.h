#pragma once
// How the ranks learn each other's losses, and whether one of them asks to stop, where they share no memory: one
// all-gather in a step. Allocates nothing after construction. One thread uses it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/step/shard_compute.h"
#include "parallel/team/team.h"

namespace echelon {

struct StopRequest {  // of a rank
  std::int64_t asked = 0;
};

class LossGather {
 public:
  // The shards whose losses each rank knows, by rank: none of them twice.
  LossGather(Team& team, std::vector<ShardRange> shards_of_rank);
  // Collective. Every rank has filled in its own shards' losses and its own request; then all have all.
  void run(std::span<ShardLoss> losses, std::span<StopRequest> stops);

 private:
  template <typename Visit>
  void for_each_rank(const Visit& visit);

  Team& team_;
  std::vector<ShardRange> shards_of_rank_;
  std::vector<std::byte> packed_;          // rank by rank: its request, then the losses of its shards
  std::vector<std::size_t> packed_bytes_;  // by rank
};

}  // namespace echelon
