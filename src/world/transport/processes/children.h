#pragma once
// Ranks as child processes of this process, which only watches them. If it dies, they are killed. The first SIGINT,
// SIGTERM, SIGUSR1 or SIGHUP that it gets is passed on to them; a second one ends them and this process at once
// (world/os/signals.h). Nothing is thrown for what happens to the children: the first failure is recorded in the
// segment, by the rank that fails, or here if that rank was killed.

#include <functional>

#include "world/transport/memory/segment.h"

namespace echelon {

struct ChildOptions {
  int first_rank = 0;          // what the first child is called in messages
  double grace_seconds = 5;    // after a failure the other ranks have that long to end before they are killed
  bool hears_signals = false;  // as world/launch.h has it
  std::function<void(int rank, int signal)> on_death = {};  // as world/launch.h has it
  std::function<bool(int signal)> on_signal = {};           // as world/launch.h has it
  std::function<bool()> go_on = {};                         // as world/launch.h has it
  std::function<void()> started = {};  // called here once all children exist: what only they need can be closed
};

// Forks one child for each rank of the segment (call it while this process has one thread), each of which runs
// `body(index)`, and returns when all have ended. The body throws nothing, records its failure in the segment, and
// marks its rank there as ended before it returns.
void run_children(Segment& segment, const ChildOptions& options, const std::function<void(int index)>& body);

}  // namespace echelon
