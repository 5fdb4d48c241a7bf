#pragma once
// What is wrong with a run, from what its ranks have recorded (world/os/event_ring.h) and what the system says of their
// processes: pure functions of two looks, some time apart.

#include <array>
#include <span>
#include <string>
#include <vector>

#include "world/os/event_ring.h"
#include "world/os/process_facts.h"

namespace echelon {

enum class Cause {
  none,           // all is well
  died,           // its process is gone
  stopped,        // its process was stopped (SIGSTOP, a debugger)
  deadlock,       // ranks wait for each other in a circle
  slow_disk,      // a checkpoint takes long to be written
  input_bound,    // waits for its samples
  slow_link,      // all ranks are at exchanging
  other_program,  // something else has its core
  slow,           // computes more slowly than the others
};
std::string_view to_string(Cause cause);  // "input-bound"

// What a rank may do for as long as it takes without a step.
inline constexpr std::array<std::string_view, 2> calm_activities{"an evaluation", "a pause, as asked"};

struct RankLook {
  RingView ring;
  ProcessFacts process;
  bool here = true;  // on this machine, so that `process` means something
};

struct Diagnosis {
  Cause cause = Cause::none;
  int rank = -1;
  std::string host, operation;  // what the rank does, or did last
  std::string details;

  // "rank 2 of host-a: stopped (its process 4711 was stopped) in backward of conv2, step 120"
  std::string text() const;
};

// Two looks at all ranks, `seconds` apart, the second at the time `now` (since 1970). Of one rank: the worst.
Diagnosis diagnose(std::span<const RankLook> before, std::span<const RankLook> now_seen, double seconds, double now);

// Of a rank that was lost: what it did at its end.
std::string last_words(const RingView& ring);

// Looks at the rings of a run: logs/rank_N.ring. Those of ranks that are not there are left out.
std::vector<RankLook> look_at_ranks(const std::string& run_folder);
std::string ring_path(const std::string& run_folder, int rank);
std::string incidents_path(const std::string& run_folder);  // what went wrong in it so far, a line each (JSON)

}  // namespace echelon
