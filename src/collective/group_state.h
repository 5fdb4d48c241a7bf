#pragma once
// What a group owns. Internal to the room: only the collectives use it, each on the task that uses the group.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/group.h"
#include "collective/link_costs.h"
#include "collective/members.h"
#include "collective/shard_tree.h"
#include "collective/shared_memory/control_segment.h"
#include "collective/shared_memory/shared_blocks.h"
#include "collective/topology.h"
#include "collective/typed_span.h"
#include "tensor/buffer.h"
#include "world/channels.h"

namespace echelon {

struct Algorithm;

// What all groups of a rank that come from one `everyone` have in common.
struct GroupResources {
  Channel next_channel = first_group_channel + 1;  // a number that no group of this rank uses yet
  SharedBlocks blocks;
};

struct PendingTransfer {  // a send or a receive that is under way
  Work work;
  Range range;
  Rank peer = 0;
};

class GroupState {
 public:
  GroupState(World& world, std::shared_ptr<GroupResources> resources, std::shared_ptr<const Members> members,
             Channel channel, WaitOptions wait_policy);

  Rank rank(int member) const { return (*members)[member]; }
  const HostTopology& hosts();  // which members share a host
  int size() const { return members->size(); }
  // At least that much memory; its former content is lost.
  std::span<std::byte> scratch(std::size_t bytes);
  // part_of for every member.
  std::span<const Range> equal_parts(std::size_t count, std::size_t grain = 1);

  // Where `data` of this rank lies in shared memory, in terms that every member understands; and back.
  SharedAddress shared_address(std::span<const std::byte> data) const {
    return resources->blocks.address_of(data, world.rank(), *members);
  }
  std::byte* pointer_to(SharedAddress address, int member) const {
    return resources->blocks.pointer_to(address, rank(member));
  }
  void barrier() { control->barrier(wait_policy); }  // only with a control segment

  World& world;
  std::shared_ptr<GroupResources> resources;
  std::shared_ptr<const Members> members;
  int index = 0;
  Channel channel;
  std::uint32_t number = 0;  // of the operation that is under way
  WaitPolicy wait_policy;
  std::unique_ptr<ControlSegment> control;  // null where the world has no shared memory
  std::optional<LinkCosts> link_costs;      // measured when they are first needed
  std::span<std::byte> staging;             // in shared memory, for data that is not: see all_reduce/direct.cpp
  std::size_t chosen_bytes = 0;             // the size for which `auto` chose last, and its choice
  const Algorithm* chosen = nullptr;
  std::uint64_t small_operations = 0;

 private:
  Buffer scratch_;  // before the transfers that may name it

 public:
  std::vector<PendingTransfer> sends, receives;  // these are kept for their memory
  std::vector<PartialSum> partials, nodes;
  std::vector<std::byte*> pointers;
  std::uint32_t blocks_made = 0;  // by allocate

 private:
  std::vector<Range> parts_;
  std::optional<HostTopology> hosts_;
};

// One collective operation under way: takes the next operation number, announces it to the other members, and reports
// the time of a successful operation to the group's wait policy. Lives as long as the operation.
class CollectiveOperation {
 public:
  CollectiveOperation(Group& group, OperationKind kind, ElementType type, Reduction reduction, std::size_t count,
                      std::string_view name);
  ~CollectiveOperation();
  CollectiveOperation(const CollectiveOperation&) = delete;
  CollectiveOperation& operator=(const CollectiveOperation&) = delete;

  Label label(int step) const;

 private:
  GroupState& state_;
  Label label_;
  int exceptions_;
};

}  // namespace echelon
