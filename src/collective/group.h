#pragma once
// Ranks that do things together. Every collective (collectives.h, all_reduce.h, shard_sum.h) is a function over a group
// that all members call, in the same order and with the same sizes and types. Each call takes the group's next
// operation number into its messages' labels, so that ranks which disagree find out (Mismatch) instead of mixing up
// their numbers.
//
// A group owns a channel of its world, scratch memory that grows to the largest operation and then stays, its
// wait_policy (wait_policy.h) and what it has measured of its links (link.h). The world must outlive it. One task at a
// time uses a group; `async_group` gives another task one of its own. Movable.

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

  // Collective. Those who say the same color become a group, ordered by key, then by their order here.
  Group split(int color, int key);
  // Collective. The same members on a channel of its own, for another task.
  Group async_group();

  // Collective. Memory that the other members see, if the world has such memory: collectives on numbers in it read them
  // where they lie. Else plain memory of this rank. Zero-filled, on pages of its own, lives as long as any group that
  // came from the same `everyone`.
  std::span<std::byte> allocate(std::size_t bytes);
  template <typename T>
  std::span<T> allocate_numbers(std::size_t count) {
    return {reinterpret_cast<T*>(allocate(count * sizeof(T)).data()), count};
  }

  GroupState& state() { return *state_; }  // for the collectives themselves: group_state.h

 private:
  explicit Group(std::unique_ptr<GroupState> state);
  Group derived(std::vector<Rank> members, Channel channel);
  std::unique_ptr<GroupState> state_;
};

}  // namespace echelon
