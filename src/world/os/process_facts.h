#pragma once
// What the system says of a process of this machine. Thread-safe; nothing throws.

#include <cstdint>

namespace echelon {

struct ProcessFacts {
  bool exists = false;
  char state = 0;              // as ps shows it: R runs, S sleeps, D waits for a disk, T was stopped, Z has ended
  std::uint64_t began = 0;     // in the system's ticks: tells processes apart that had the same number
  double ran = 0;              // seconds that its threads have had a core
  double waited_for_core = 0;  // seconds that they could have run, and something else did
};

ProcessFacts look_at_process(int process);
void end_process(int process);  // at once (SIGKILL)

}  // namespace echelon
