#pragma once
// A communicator: an ordered set of ranks that take part in collectives together. Every collective (collectives.h,
// all_reduce.h, shard_sum.h) is a function over a group which all members call, in the same order and with the same
// sizes and types. Each call puts the group's next operation number into the labels of its messages, so that members
// which disagree find out (Mismatch) instead of mixing up their data.
//
// A group owns a channel of its world, scratch memory that grows to the largest operation and then stays, its
// wait policy (wait_policy.h) and the measured costs of its links (link_costs.h). The world must outlive it. One task
// at a time uses a group; `dup` makes one for another task. Movable.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collective/wait_policy.h"
#include "world/world.h"

namespace echelon {

class GroupState;

class Group {
 public:
  // All ranks of the world. Once per world: a second one would use the same channel.
  static Group everyone(World& world, WaitOptions wait_policy = {});
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  ~Group();

  World& world() const;
  int size() const;
  int index() const;               // of this rank among the members
  Rank rank_of(int member) const;  // in the world
  Channel channel() const;
  WaitPolicy& wait_policy();

  // Collective, as MPI_Comm_split: members with the same color become a group, ordered by key, then by their order
  // here.
  Group split(int color, int key);
  // Collective, as MPI_Comm_dup: the same members on another channel, for another task.
  Group dup();

  // Collective. Zero-filled memory on pages of its own. If the world has shared memory, the other members see it, and
  // collectives on data in it read the data in place; otherwise it is plain memory of this rank. It lives until the
  // last group is gone that comes from the same `everyone`.
  std::span<std::byte> allocate(std::size_t bytes);
  template <typename T>
  std::span<T> allocate_span(std::size_t count) {
    return {reinterpret_cast<T*>(allocate(count * sizeof(T)).data()), count};
  }

  GroupState& state() { return *state_; }  // for the collectives themselves: group_state.h

 private:
  explicit Group(std::unique_ptr<GroupState> state);
  Group derived(std::vector<Rank> members, Channel channel);
  std::unique_ptr<GroupState> state_;
};

}  // namespace echelon
