#pragma once
// The sum over shards and the update, block by block, so that each block is summed and used while it is in the nearest
// cache. Every core does its own blocks (optim/update.h).

#include <atomic>
#include <cstdint>
#include <span>

#include "collective/shard_tree.h"
#include "kernels/vector.h"
#include "optim/update.h"

namespace echelon {

struct UpdatePart {
  Update& update;
  int member = 0, members = 1;  // this core among all that do the update
  int shards = 1;
  std::span<const PartialSum> sums;     // that make up the whole sum
  float* total = nullptr;               // where the sum goes, which the update reads
  std::uint32_t* not_finite = nullptr;  // set to 1 if something in the sum is no number; null: nobody looks
};

// Sums the core's blocks without updating.
inline void sum_blocks(const UpdatePart& p) {
  const Update::BlockRange part =
      p.update.part(static_cast<std::size_t>(p.member), static_cast<std::size_t>(p.members));
  for (std::size_t b = part.first; b < part.last; ++b) {
    const Update::Block& block = p.update.blocks()[b];
    sum_over_shards(p.shards, p.sums, block.offset, block.offset + block.size, p.total);
  }
}

// Called by every core. `folds`: one core of each process does. `barrier(what)` meets all cores that do the update;
// `done()` is called after the core's last block, before the last barrier.
template <typename Barrier, typename Done>
void sum_and_update(const UpdatePart& p, bool folds, const Barrier& barrier, const Done& done) {
  Update& update = p.update;
  const Update::BlockRange part = update.part(static_cast<std::size_t>(p.member), static_cast<std::size_t>(p.members));
  for (int phase = 0; phase < update.phases(); ++phase) {
    for (std::size_t b = part.first; b < part.last; ++b) {
      const Update::Block& block = update.blocks()[b];
      if (phase == 0) sum_over_shards(p.shards, p.sums, block.offset, block.offset + block.size, p.total);
      if (phase == 0 && p.not_finite && !kernels::all_finite(p.total + block.offset, block.size))
        std::atomic_ref(*p.not_finite).store(1, std::memory_order_relaxed);
      update.run(phase, {b, b + 1});
    }
    const bool last = phase + 1 == update.phases();
    if (last) done();
    barrier("the end of the update");
    if (folds) update.fold(phase);
    if (!last) barrier("a norm of the update");
  }
}

}  // namespace echelon
