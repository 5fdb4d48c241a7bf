#pragma once
// The blocks of shared memory that a rank's groups have allocated: each has one copy per member of its group. Blocks
// are only added; a task may look addresses up while another one adds a block. Internal to the room.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "collective/members.h"
#include "tensor/buffer.h"
#include "world/world.h"

namespace echelon {

// An address in shared memory that means the same to every member: pointers differ from process to process.
struct SharedAddress {
  std::uint64_t block = 0;  // its key; 0: not in shared memory
  std::uint64_t offset = 0;
  friend bool operator==(const SharedAddress&, const SharedAddress&) = default;
};

struct SharedBlock {
  std::uint64_t key = 0;
  std::shared_ptr<const Members> members;
  std::span<std::byte> all;  // the members' copies one after the other
  std::size_t stride = 0;
  Buffer own;  // where the world has no shared memory: this rank's copy, and nothing else
  std::unique_ptr<SharedBlock> next;
};

class SharedBlocks {
 public:
  ~SharedBlocks();
  void add(std::unique_ptr<SharedBlock> block);
  // Of `data` in this rank's own copy; block 0 if no block that all of `members` have contains it.
  SharedAddress address_of(std::span<const std::byte> data, Rank rank, const Members& members) const;
  // The same address in the copy of `rank`, for this process.
  std::byte* pointer_to(SharedAddress address, Rank rank) const;

 private:
  std::atomic<SharedBlock*> newest_{nullptr};
};

}  // namespace echelon
