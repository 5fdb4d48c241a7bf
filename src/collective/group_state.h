#pragma once
// What a group owns, for the collectives of this room.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/group.h"
#include "collective/link.h"
#include "collective/meeting.h"
#include "collective/members.h"
#include "collective/shard_tree.h"
#include "collective/shared_blocks.h"
#include "collective/topology.h"
#include "collective/typed_span.h"
#include "tensor/buffer.h"
#include "world/channels.h"

namespace echelon {

struct Algorithm;

// What all groups that came from one `everyone` have in common.
struct Family {
  Channel next_channel = first_group_channel + 1;  // a number that no group of this rank uses yet
  SharedBlocks blocks;
};

struct PendingSend {
  Work work;
  Range range;
  Rank peer = 0;
};

class GroupState {
 public:
  GroupState(World& world, std::shared_ptr<Family> family, std::shared_ptr<const Members> members, Channel channel,
             WaitOptions wait_policy);

  Rank rank(int member) const { return (*members)[member]; }
  const Site& site();  // which members share a host
  int size() const { return members->size(); }
  // At least that much memory; what was in it is gone.
  std::span<std::byte> scratch(std::size_t bytes);
  // part_of for every member.
  std::span<const Range> equal_parts(std::size_t count, std::size_t grain = 1);
  SharedPlace find(std::span<const std::byte> data) const { return family->blocks.find(data, world.rank(), *members); }
  SharedPlace staging_place(std::size_t offset) const { return find(staging.subspan(offset)); }
  std::byte* see(SharedPlace place, int member) const { return family->blocks.see(place, rank(member)); }

  World& world;
  std::shared_ptr<Family> family;
  std::shared_ptr<const Members> members;
  int index = 0;
  Channel channel;
  std::uint32_t number = 0;  // of the operation that is under way
  WaitPolicy wait_policy;
  std::unique_ptr<Meeting> meeting;  // null where the world has no shared memory
  std::optional<Link> link;          // measured when it is first needed
  std::span<std::byte> staging;      // in shared memory, for numbers that are not: see all_reduce/direct.cpp
  std::size_t chosen_bytes = 0;      // what auto took last, and for how many bytes
  const Algorithm* chosen = nullptr;
  std::uint64_t small_operations = 0;

 private:
  Buffer scratch_;  // before the messages that may name it

 public:
  std::vector<PendingSend> sends, receives;  // these are kept for their memory
  std::vector<PartialSum> partials, nodes;
  std::vector<std::byte*> pointers;
  std::uint32_t blocks_made = 0;  // by allocate

 private:
  std::vector<Range> parts_;
  std::optional<Site> site_;
};

// One call of a collective: takes the next operation number, tells the others, and lets the group's wait_policy learn
// from it when it went well. Lives as long as the operation.
class Call {
 public:
  Call(Group& group, OperationKind kind, ElementType type, Reduction reduction, std::size_t count,
       std::string_view name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Label label(int step) const;
  OperationKind kind() const { return label_.kind; }

 private:
  GroupState& state_;
  Label label_;
  int exceptions_;
};

}  // namespace echelon
