#include "collective/shared_memory/shared_blocks.h"

#include "base/error.h"

namespace echelon {

SharedBlocks::~SharedBlocks() {
  for (std::unique_ptr<SharedBlock> block(newest_.load()); block;) block = std::move(block->next);
}

void SharedBlocks::add(std::unique_ptr<SharedBlock> block) {
  // A group and its duplicate may add at the same time, on two tasks.
  SharedBlock* const added = block.release();
  SharedBlock* before = newest_.load(std::memory_order_relaxed);
  do {
    added->next.release();  // set by a failed attempt: it belongs to the list
    added->next.reset(before);
  } while (!newest_.compare_exchange_weak(before, added, std::memory_order_release, std::memory_order_relaxed));
}

SharedAddress SharedBlocks::address_of(std::span<const std::byte> data, Rank rank, const Members& members) const {
  for (const SharedBlock* b = newest_.load(std::memory_order_acquire); b; b = b->next.get()) {
    if (b->all.empty() || data.data() < b->all.data() || data.data() >= b->all.data() + b->all.size()) continue;
    const std::byte* mine = b->all.data() + static_cast<std::size_t>(b->members->find(rank)) * b->stride;
    if (data.data() < mine || data.data() + data.size() > mine + b->stride) return {};
    if (&members != b->members.get() && !b->members->contains_all(members)) return {};
    return {b->key, static_cast<std::uint64_t>(data.data() - mine)};
  }
  return {};
}

std::byte* SharedBlocks::pointer_to(SharedAddress address, Rank rank) const {
  for (const SharedBlock* b = newest_.load(std::memory_order_acquire); b; b = b->next.get())
    if (b->key == address.block)
      return b->all.data() + static_cast<std::size_t>(b->members->find(rank)) * b->stride + address.offset;
  invariant(false, "a shared address that a member announces is known to all members");
  return nullptr;
}

}  // namespace echelon
