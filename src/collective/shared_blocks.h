#pragma once
// The pieces of shared memory that a rank's groups have allocated: one copy for each member of the group that did.
// Grows only; a task may look things up while another allocates. Internal to the room.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "collective/members.h"
#include "tensor/buffer.h"
#include "world/world.h"

namespace echelon {

// A place in a block, in words that every member understands: addresses differ from rank to rank.
struct SharedPlace {
  std::uint64_t block = 0;  // its key; 0: not in shared memory
  std::uint64_t offset = 0;
  friend bool operator==(const SharedPlace&, const SharedPlace&) = default;
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
  // Where `data`, in this rank's own copy, lies; none if it does not lie in a block that all of `members` have.
  SharedPlace find(std::span<const std::byte> data, Rank rank, const Members& members) const;
  // That place in the copy of `rank`, as seen from here.
  std::byte* see(SharedPlace place, Rank rank) const;

 private:
  std::atomic<SharedBlock*> newest_{nullptr};
};

}  // namespace echelon
