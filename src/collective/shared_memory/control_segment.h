#pragma once
// A group's control data in memory that all members see: one entry per member, in which it announces its current
// operation and where its data lies, and a barrier. Internal to the room.
//
// An entry is written by its member alone. Fields that are not atomic are read by the others only between two barriers.
// Used by the task that uses the group.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "collective/members.h"
#include "collective/shared_memory/shared_blocks.h"
#include "collective/wait_policy.h"
#include "world/world.h"

namespace echelon {

struct SharedPartial {  // a PartialSum (shard_tree.h) for other members to read
  std::int32_t first = 0, last = 0;
  SharedAddress address;
};

struct alignas(64) MemberEntry {
  std::atomic<std::uint64_t> arrived;  // barriers at which the member has arrived so far
  std::atomic<std::uint64_t> label;    // of the member's current operation
  std::atomic<std::uint64_t> count;    // and its elements
  SharedAddress address;               // where they lie
  std::int32_t partials = 0;           // used entries of `partial`
  std::array<SharedPartial, 160> partial;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class ControlSegment {
 public:
  // The name must be the same for all members, and used for nothing else.
  ControlSegment(World& world, std::string_view name, std::shared_ptr<const Members> members, int index);

  int size() const { return members_->size(); }
  MemberEntry& mine() { return entries_[static_cast<std::size_t>(index_)]; }
  const MemberEntry& of(int member) const { return entries_[static_cast<std::size_t>(member)]; }

  // This member is in the operation `label` with `count` elements.
  void announce(const Label& label, std::uint64_t count);
  // Throws Mismatch, with both descriptions, if another member has announced a different operation under this number.
  void check_same_operation() const;
  // Returns when all members have arrived. What each wrote before is then visible to all.
  void barrier(WaitPolicy& wait_policy);

 private:
  Rank missing_rank() const;  // one that has not arrived at this member's barrier; -1: none is known

  World& world_;
  std::shared_ptr<const Members> members_;
  int index_;
  std::span<MemberEntry> entries_;
  std::unique_ptr<SharedBarrier> barrier_;
};

}  // namespace echelon
