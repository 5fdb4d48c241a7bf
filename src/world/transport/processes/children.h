#pragma once
// Ranks as children of this process, which only watches them. If it dies, so do they; the first SIGINT, SIGTERM or
// SIGUSR1 that is sent to it is passed on, a second one ends them and it at once (world/os/signals.h). Nothing is
// thrown for what happens to the children: the first failure is written into the segment's failure, by the rank that
// has it or here if that one was killed.

#include <functional>

#include "world/transport/memory/segment.h"

namespace echelon {

struct ChildOptions {
  int first_rank = 0;          // what the first child is called in messages
  double grace_seconds = 5;    // after a failure the others have that long to end by themselves
  bool hears_signals = false;  // as world/launch.h has it
};

// Forks one child for each rank of the segment (call it while this process has one thread), each of which runs
// `body(index)`, and returns when all have ended. The body throws nothing, writes its failure into the failure, and
// marks its rank in the segment as ended before it returns.
void run_children(Segment& segment, const ChildOptions& options, const std::function<void(int index)>& body);

}  // namespace echelon
