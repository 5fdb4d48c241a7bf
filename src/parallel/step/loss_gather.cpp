#include "parallel/step/loss_gather.h"

#include <cstring>

namespace echelon {

LossGather::LossGather(Team& team, std::vector<ShardRange> shards_of_rank)
    : team_(team), shards_of_rank_(std::move(shards_of_rank)) {
  std::size_t all = 0;
  for (const ShardRange range : shards_of_rank_) {
    packed_bytes_.push_back(sizeof(StopRequest) + static_cast<std::size_t>(range.count()) * sizeof(ShardLoss));
    all += packed_bytes_.back();
  }
  packed_.resize(all);
}

// Calls visit(rank, its shards, where they are packed).
template <typename Visit>
void LossGather::for_each_rank(const Visit& visit) {
  std::byte* at = packed_.data();
  for (std::size_t r = 0; r < shards_of_rank_.size(); ++r) {
    visit(r, shards_of_rank_[r], at);
    at += packed_bytes_[r];
  }
}

void LossGather::run(std::span<ShardLoss> losses, std::span<StopRequest> stops) {
  for_each_rank([&](std::size_t r, ShardRange range, std::byte* at) {
    std::memcpy(at, &stops[r], sizeof(StopRequest));
    at += sizeof(StopRequest);
    for (int s = range.first; s < range.last; s += range.stride, at += sizeof(ShardLoss))
      std::memcpy(at, &losses[static_cast<std::size_t>(s)], sizeof(ShardLoss));
  });
  team_.all_gather(packed_, packed_bytes_);
  for_each_rank([&](std::size_t r, ShardRange range, const std::byte* at) {
    std::memcpy(&stops[r], at, sizeof(StopRequest));
    at += sizeof(StopRequest);
    for (int s = range.first; s < range.last; s += range.stride, at += sizeof(ShardLoss))
      std::memcpy(&losses[static_cast<std::size_t>(s)], at, sizeof(ShardLoss));
  });
}

}  // namespace echelon
