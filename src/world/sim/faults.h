#pragma once
// What goes wrong in a simulation, and when. Plain data; every chance is drawn from the simulation's seed, so a seed
// alone repeats it all. Times are virtual seconds since the start.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace echelon {

struct FaultPlan {
  static constexpr double forever = std::numeric_limits<double>::infinity();

  // For each frame on the wire (world/sim/connections.h), the probability that it ...
  double drop = 0;       // is lost
  double duplicate = 0;  // arrives twice
  double reorder = 0;    // is held back for up to `reorder_seconds`, so that others overtake it
  double delay = 0;      // arrives up to `delay_seconds` late
  double corrupt = 0;    // arrives with one to eight bits flipped
  double stale = 0;      // arrives together with one that an earlier incarnation of its sender had sent
  double reorder_seconds = 0.001;
  double delay_seconds = 0.05;
  double begin = 0, end = forever;  // of all these

  struct Crash {
    int rank = 0;
    double at = 0;
    bool power = false;  // the whole machine: all its ranks, and what its disk had not synced
  };
  struct Pause {
    int rank = 0;
    double at = 0, seconds = 0;
  };
  struct Slow {
    int rank = 0;
    double factor = 1;  // its arithmetic takes that many times as long
    double begin = 0, end = forever;
  };
  struct Partition {
    std::vector<int> one, other;  // ranks
    bool one_way = false;         // only frames from `one` to `other` are lost
    double begin = 0, end = forever;
  };
  struct DiskFull {
    int machine = 0;
    double begin = 0, end = forever;
  };
  std::vector<Crash> crashes;
  std::vector<Pause> pauses;
  std::vector<Slow> slow;
  std::vector<Partition> partitions;
  std::vector<DiskFull> full_disks;

  // Whether messages must travel as frames that can be lost and are sent again.
  bool on_messages() const {
    return drop > 0 || duplicate > 0 || reorder > 0 || delay > 0 || corrupt > 0 || stale > 0 || !partitions.empty();
  }
};

// How often each has happened.
struct FaultCounts {
  std::uint64_t dropped = 0, duplicated = 0, reordered = 0, delayed = 0, corrupted = 0, stale = 0, cut = 0;
  std::uint64_t crashes = 0, pauses = 0, slowed = 0, full_disks = 0;
};

// Whether each planned event has had an effect, in the order of the plan.
struct FiredFaults {
  std::vector<char> crashes, pauses, slow, partitions, full_disks;
  explicit FiredFaults(const FaultPlan& plan = {});
};

// One line a fault, as in a cluster file's [faults].
std::string to_text(const FaultPlan& plan);

// The planned events that have happened, and those that have not, one line each as in to_text. Probabilities of frames
// are no events.
struct FaultAccount {
  std::vector<std::string> fired, unfired;
};
FaultAccount account_for(const FaultPlan& plan, const FiredFaults& fired);

// BadInput naming ranks and machines that are not there, and probabilities that are none.
void check(const FaultPlan& plan, int ranks, int machines);

}  // namespace echelon
