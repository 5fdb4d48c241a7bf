#pragma once
// The members of a group in memory that they all see: a slot for each in which it says what it is at, and a barrier.
// Internal to the room.
//
// A slot is written by its member alone. What is not atomic in it is read by others only between two `meet`s.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "collective/members.h"
#include "collective/shared_blocks.h"
#include "collective/wait_policy.h"
#include "world/world.h"

namespace echelon {

struct SharedPartial {  // a PartialSum (shard_tree.h) for others to read
  std::int32_t first = 0, last = 0;
  SharedPlace place;
};

struct alignas(64) Slot {
  std::atomic<std::uint64_t> arrived;  // how often its member has come to a meeting
  std::atomic<std::uint64_t> label;    // of the collective that its member is in
  std::atomic<std::uint64_t> count;    // and the numbers that it brought
  SharedPlace place;                   // where they lie
  std::int32_t partials = 0;
  std::array<SharedPartial, 160> partial;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class Meeting {
 public:
  // Names must be the same for all members, and used for nothing else.
  Meeting(World& world, std::string_view name, std::shared_ptr<const Members> members, int index);

  int size() const { return members_->size(); }
  Slot& mine() { return slots_[static_cast<std::size_t>(index_)]; }
  const Slot& of(int member) const { return slots_[static_cast<std::size_t>(member)]; }

  // This member is in the collective `label` with `count` numbers.
  void announce(const Label& label, std::uint64_t count);
  // Throws Mismatch, with both descriptions, if another member is in a different one with the same number.
  void compare() const;
  // All arrive, then all go on. What each wrote before is then seen by all.
  void meet(WaitPolicy& wait_policy);

 private:
  Rank latecomer() const;

  World& world_;
  std::shared_ptr<const Members> members_;
  int index_;
  std::span<Slot> slots_;
  std::unique_ptr<SharedBarrier> barrier_;
};

}  // namespace echelon
