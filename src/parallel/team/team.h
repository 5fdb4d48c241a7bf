#pragma once
// The cores that train on one memory: those of one process, or of all ranks of a job whose world has shared memory.
// They share one copy of the parameters and of the optimizer's state, and split the update among them.
//
// All ranks make their team with the same number of cores and ask for the same memory in the same order.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/collectives.h"
#include "collective/group.h"
#include "collective/topology.h"
#include "collective/typed_span.h"
#include "tensor/buffer.h"
#include "world/alone.h"
#include "world/os/cores.h"
#include "world/os/mutex.h"
#include "world/world.h"

namespace echelon {

class Team {
 public:
  // Both must outlive the team. `apart`: do not share memory with other ranks even if it is possible.
  Team(World& world, Cores& cores, bool apart = false);

  World& world() { return world_; }
  Cores& cores() { return cores_; }
  bool is_everyone() const { return ranks_ == world_.size(); }  // else the ranks have to send each other messages
  int ranks() const { return ranks_; }                          // that belong to the team
  int size() const { return ranks_ * cores_.count(); }          // cores of all together
  int number(int core) const { return (ranks_ > 1 ? world_.rank() * cores_.count() : 0) + core; }  // among them

  // Zeroed memory that the whole team sees, under a name that is used once.
  std::span<std::byte> memory(const std::string& name, std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

  // Every core of the team calls it and returns when all have. `what` names the occasion in messages about a
  // long wait.
  // Throws PeerLost, or TooLate after `timeout` seconds.
  void barrier(int core, const char* what);

  // Between all ranks of the world, not only the team's. One thread of each rank calls these, all in the same order.
  // One record of each rank, by rank.
  template <typename T>
  std::vector<T> all_gather_struct(const T& mine) {
    return group_ ? echelon::all_gather_struct(*group_, mine) : std::vector<T>{mine};
  }
  // Records of each rank: counts[0] of rank 0, counts[1] of rank 1, ... Every rank has filled in its own; then all have
  // all.
  template <typename T>
  void all_gather_structs(std::span<T> records, std::span<const std::size_t> counts) {
    static_assert(std::is_trivially_copyable_v<T>);
    all_gather(std::as_writable_bytes(records), counts, sizeof(T));
  }
  // The same with counts in units of so many bytes.
  void all_gather(std::span<std::byte> all, std::span<const std::size_t> counts, std::size_t unit = 1);
  void broadcast(std::span<std::byte> bytes);  // from rank 0 to all
  Group& group() { return *group_; }           // not if alone
  // Seconds to add to this rank's clock to get rank 0's, as well as messages can tell; 0 on the same machine.
  double clock_offset();

  // Seconds that this rank has waited in barriers for the rank that came last, by rank.
  std::span<const double> waited() const { return waited_; }
  // Seconds that all tasks of this rank have waited for messages of that one: of the group, its duplicates, and
  // messages (parallel/team/message_wait.h).
  double waited_for_messages(Rank rank) const { return for_messages_[static_cast<std::size_t>(rank)]; }

  // Waits for messages of other ranks, when each was: kept from now on, for a trace. Before any task uses the team.
  struct Wait {
    Rank rank;
    double begin, end;  // of the world's clock
  };
  void keep_waits() { keeps_waits_ = true; }
  std::vector<Wait> kept_waits();

  // Called (at growing intervals) while this rank waits for a long time; and with what `say` is given. By any task of
  // this rank, never by two at once.
  std::function<void(const WaitNotice&)> on_late;
  void say(const std::string& text);  // something that happens once, so it is never left out
  double timeout = 300;               // seconds

 private:
  // Of a rank: the last barrier it has reached, and when. Nobody is more than one ahead of the others, so the times of
  // two are enough.
  struct BarrierArrival {
    std::uint64_t number;
    double time[2];
    std::byte padding[40];  // a cache line each
  };
  void meet_ranks(const char* what);
  void count_wait(Rank rank, double seconds);
  void say_late(const WaitNotice& notice);
  WaitNotice late_notice(const char* what, double waited);

  World& world_;
  Cores& cores_;
  int ranks_ = 1;
  std::size_t bytes_ = 0;
  std::vector<Buffer> own_;
  std::optional<Group> group_;
  std::vector<Range> parts_;
  std::unique_ptr<SharedBarrier> barrier_;
  std::span<BarrierArrival> arrivals_;
  std::uint64_t meetings_ = 0;
  double usual_ = 0;  // seconds that a barrier takes at most, of late
  std::vector<double> waited_;
  std::vector<std::atomic<double>> for_messages_;
  Mutex saying_;  // to call on_late
  bool keeps_waits_ = false;
  Mutex keeping_;  // guards what follows
  std::vector<Wait> waits_;
};

// A team of this process alone, with all that it needs.
struct LocalTeam {
  explicit LocalTeam(int core_count) : world(make_world_alone()), cores(core_count), team(*world, cores) {}
  std::unique_ptr<World> world;
  Cores cores;
  Team team;
};

}  // namespace echelon
