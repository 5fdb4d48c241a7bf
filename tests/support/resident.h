#pragma once
// How much of a mapping this process holds in memory.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace echelon::test {

// KiB of the process' memory that the mapping with that address has.
inline long resident_kib(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    long kib = 0;
    if (inside && std::sscanf(line.c_str(), "Rss: %ld kB", &kib) == 1) return kib;
  }
  return -1;
}

}  // namespace echelon::test
