#pragma once
// A program on thousands of ranks in one thread, on virtual time: every rank is a fiber, every wait lets others run,
// and time jumps from event to event. With the same cluster, options and program the same things happen, always: the
// report's `trace_hash` is over every event. A failing seed is replayed by running it again.
//
//   const SimReport report = run_in_simulation(SimCluster::uniform(1000, 5e-6, 1.25e9), {.seed = 7}, [](World& world) {
//     ...
//   });
//
// What takes time: `World::compute` (the model: sim/cluster.h), `World::sleep`, messages. What does not: everything
// else a program does. A program must not wait for anything but through its World: no threads, no spinning on the clock
// (that is noticed). `World::disk` is a disk in memory for each machine.
//
// Messages. A send of at most `eager_bytes` is done when it has left; a longer one when the receiver has taken it, so
// that a program which counts on buffering gets stuck here and not only on a real cluster. If the fault plan drops,
// repeats, corrupts, ... messages, they travel as frames that are sent again until they arrive
// (world/sim/connections.h).
//
// Failure. A rank whose program throws is lost to all others after the latency of the link to each of them; a crashed
// rank after `detection_seconds`; a rank that does not answer after `most_tries` of one frame. If nothing is left to
// happen and ranks still wait, every wait throws `Deadlock`, which says who waits for what.
//
// Not thread-safe, but several simulations may run in several threads.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "world/failure.h"
#include "world/launch.h"
#include "world/sim/cluster.h"
#include "world/sim/faults.h"
#include "world/sim/memory_disk.h"
#include "world/sim/planted_bugs.h"

namespace echelon {

// Nobody can go on. The text says who waits for what.
class Deadlock : public Failure {
  using Failure::Failure;
};

struct SimOptions {
  std::uint64_t seed = 0;  // of the faults, and of the job's random streams
  FaultPlan faults = {};
  double detection_seconds = 1;  // until a crash is noticed
  std::size_t eager_bytes = 64 << 10;
  std::size_t stack_bytes = 512 << 10;  // of each fiber; only what is touched is used
  double longest_seconds = 1e7;         // virtual; then every wait throws
  // Of a frame that gets no answer: the timeout after the first try (besides the time on the wire), the longest one (it
  // doubles with each try), and the tries until the peer counts as lost.
  double least_timeout = 0.001, longest_timeout = 2;
  int most_tries = 16;
  // The disk of each machine, to look at later or to start again with; missing ones are made new.
  std::vector<std::shared_ptr<MemoryDisk>> disks = {};
  std::function<void(std::string_view line)> log = {};  // faults and failures as they happen; may be empty
  PlantedBugs bugs = {};                                // only for tests of the tests
};

struct SimRankReport {
  std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;  // by the program
  double compute_seconds = 0, waiting_seconds = 0;  // waiting: of all its tasks, for messages
};

struct SimFailure {
  int rank = 0;
  double at = 0;
  std::string text;
  bool crashed = false;      // by the fault plan: its program said nothing
  std::exception_ptr error;  // what its program threw
};

struct SimReport {
  double seconds = 0;                         // virtual, until the last rank ended
  std::uint64_t messages = 0, bytes = 0;      // sent by the program
  std::uint64_t frames = 0, frame_bytes = 0;  // on the wire, with repetitions; 0 without faults on messages
  std::vector<SimRankReport> ranks;
  FaultCounts faults;  // that did happen
  FiredFaults fired;   // of the plan's events
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  std::vector<SimFailure> failures;  // in the order in which they happened

  bool ok() const { return failures.empty(); }
  // Throws the first failure as launch.h says: RankFailed, or BadInput if the rank threw that.
  void throw_if_failed() const;
};

// BadInput if the cluster or the fault plan makes no sense. What ranks throw is in the report.
SimReport run_in_simulation(const SimCluster& cluster, const SimOptions& options, const Program& program);

}  // namespace echelon
