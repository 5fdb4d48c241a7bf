#pragma once
// Ways to run a program on several ranks. Each returns when the program has ended on all the ranks that it started, and
// throws `RankFailed` with the first failure if one of them failed (BadInput stays BadInput).
//
//   run_in_threads    ranks are threads of this process
//   run_in_processes  ranks are children of this process on shared memory
//   run_in_simulation ranks are fibers on virtual time:                      world/sim/simulation.h
//   join_tcp          this process becomes one rank of a job on a network:   world/transport/tcp/join.h
//   join_mpi          this process becomes one rank of an MPI job:           world/transport/mpi/join.h

#include <cstdint>
#include <functional>

#include "world/world.h"

namespace echelon {

using Program = std::function<void(World&)>;

struct LaunchOptions {
  std::uint64_t seed = 0;
  // The most that shared memory may grow to; pages are taken when used.
  std::size_t shared_bytes = std::size_t{1} << 36;
  double grace_seconds = 5;  // processes: after a failure the other ranks have that long to end before they are killed
  // The program makes StopSignals (world/os/signals.h). In a rank with a process of its own, a signal that arrives
  // before that, while the rank starts or connects, is kept until then; without this an early signal ends the process.
  bool hears_signals = false;
  // processes, tcp: called in the launcher for a rank whose process was killed, not by the launcher itself.
  std::function<void(int rank, int signal)> on_death = {};
  // processes, tcp: asked in the launcher about the first signal that it would pass on to the ranks; true: it does not.
  std::function<bool(int signal)> on_signal = {};
  // processes, tcp: asked in the launcher some ten times a second while ranks live; false: they are killed.
  std::function<bool()> go_on = {};
};

void run_in_threads(int ranks, const LaunchOptions& options, const Program& program);

// Forks: call it while this process has one thread. The parent only watches: rank 0 is a child too. If the parent dies,
// the ranks are killed. SIGTERM and SIGINT are passed on to them.
void run_in_processes(int ranks, const LaunchOptions& options, const Program& program);

}  // namespace echelon
