#pragma once
// What this machine has that training can use, for `echelon doctor` and `echelon --version`. Looks and changes nothing
// (the loopback is tried with one connection to itself). Thread-safe; nothing throws.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace echelon {

struct MachineFacts {
  std::string cpu;                                     // its name; empty if the system does not say
  std::vector<std::pair<std::string, bool>> features;  // instruction sets: "avx2", whether it has them
  int hardware_threads = 0, usable_cores = 0;          // of the machine; of this process (affinity)
  double cpu_quota = 0;                                // cores that a control group allows; 0: no limit
  std::size_t memory = 0, memory_free = 0;             // bytes: what this process may have; what is free now
  std::string huge_pages;                              // "always", "madvise" or "never"; empty: the kernel has none
  std::size_t shared_memory_free = 0;                  // bytes in /dev/shm
  std::size_t open_files = 0;                          // that this process may have at once
  std::string loopback_problem;                        // empty: connections to 127.0.0.1 work

  bool has(const std::string& feature) const;
};

// The instruction sets alone, which takes no time.
std::vector<std::pair<std::string, bool>> cpu_features();

MachineFacts look_at_machine();

}  // namespace echelon
