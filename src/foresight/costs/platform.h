#pragma once
// What ranks run on and what lies between them: this machine, this machine with slower links (--link), or a cluster
// that a file describes (recipe/cluster_file.h). One interface for whoever replays a plan.
//
// On this machine operations take what the profile says. On a cluster they take flops / the speed of the rank's core,
// and everything else nothing, exactly as in the simulated world (docs/simulation.md): the same file drives both.
//
// Messages pass the same resources as in the simulated world (world/sim/cluster_routes.h): NICs, uplinks, the wires of
// a torus; each serves one message after another, and the ranks behind it share it. Immutable; thread-safe.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/link_costs.h"
#include "foresight/costs/profile.h"
#include "world/sim/cluster_routes.h"
#include "world/wrappers/metered.h"

namespace echelon::foresight {

class Platform {
 public:
  // So many ranks as processes of this machine. The profile has links for as many, and outlives it.
  static Platform this_machine(const Profile& profile, int ranks, const LinkLimit& link = {});
  static Platform of_cluster(const SimCluster& cluster);
  // Ranks on a network of hosts that compute like this one: a host for each rank, by name. Between two hosts a message
  // costs what the profile has of them, else what `links` say, and passes the NICs of both. The profile outlives it.
  static Platform on_network(const Profile& profile, const std::vector<std::string>& host_of_rank,
                             const LinkCosts& links);

  int ranks() const { return static_cast<int>(machine_of_.size()); }
  int machine_of(int rank) const { return machine_of_[static_cast<std::size_t>(rank)]; }
  int switch_of(int machine) const { return switch_of_[static_cast<std::size_t>(machine)]; }
  int machines() const { return static_cast<int>(cores_.size()); }
  int cores_of(int machine) const { return cores_[static_cast<std::size_t>(machine)]; }  // that its ranks share
  int ranks_on(int machine) const { return ranks_on_[static_cast<std::size_t>(machine)]; }
  int crowd() const { return crowd_; }  // ranks on the machine with the most
  // Cores of such a machine that work at once, and how many ranks take turns on each.
  int busy() const { return std::min(crowd_, cores_of(0)); }
  double turns() const { return std::max(1.0, static_cast<double>(crowd_) / cores_of(0)); }
  bool has_wires() const { return by_rank_; }  // every rank one of its own (--link)
  // Of a message over such a wire, what ranks and their links do for it: no bytes, no waiting for the far end.
  double wire_message() const { return wire_message_; }
  bool shares_memory() const { return shares_memory_; }  // all ranks: there is one copy of the parameters
  bool is_here() const { return profile_ != nullptr; }
  const Profile* profile() const { return profile_; }
  // As the ranks would measure them among all of them.
  const LinkCosts& links() const { return links_; }
  bool alike() const { return alike_; }  // all machines and links are the same

  // Seconds of an operation on a rank's core.
  double seconds(int rank, const CoreSeconds& measured, double flops) const;
  // Seconds of a core that a rank's processor spends on copying a message.
  double copying(double bytes) const { return is_here() ? bytes * links_.memory_per_byte : 0; }
  double speed(int rank) const { return speed_[static_cast<std::size_t>(machine_of(rank))]; }  // flops a second

  // What a message passes.
  struct Resource {
    double bytes_per_second = 0;  // 0: no limit
    double latency = 0;           // from here to the next
  };
  const std::vector<Resource>& resources() const { return resources_; }
  std::vector<int> way(int from, int to) const;  // numbers of resources
  bool is_torus() const { return torus_wires_ > 0; }
  int torus_wires() const { return torus_wires_; }  // of each machine; 0: it is none
  double latency(int from, int to) const;
  double bytes_per_second(int from, int to) const;  // of the slowest part of the way

 private:
  std::vector<int> machine_of_, cores_, ranks_on_, switch_of_;
  std::vector<double> speed_;  // by machine
  std::vector<Resource> resources_;
  bool shares_memory_ = false, alike_ = true;
  bool by_rank_ = false;  // every rank has a wire of its own (--link)
  int crowd_ = 1;
  std::shared_ptr<const ClusterRoutes> routes_;  // of a cluster
  int torus_wires_ = 0;
  double wire_message_ = 0;
  int wires_ = -1;  // the first of the wires between every two machines, after all other resources; -1: none
  const Profile* profile_ = nullptr;
  LinkCosts links_;
};

// When messages arrive, as they are sent one after another: what is booked is booked.
class Wires {
 public:
  explicit Wires(const Platform& platform);
  // The time at which the last byte has arrived, if it is sent at `at`.
  double arrival(int from, int to, double bytes, double at);

 private:
  const Platform& platform_;
  std::vector<double> free_;  // when each resource has served what was sent
};

}  // namespace echelon::foresight
