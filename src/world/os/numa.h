#pragma once
// The NUMA nodes of this machine: cores that share the memory nearest to them. Looks at the system only; thread-safe,
// nothing throws.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon {

// The cores of every node that this process may use; nodes without any are left out. Where the system does not say, one
// node has all of them. `folder` is the system's own, but for tests.
std::vector<std::vector<int>> numa_nodes(const std::string& folder = "/sys/devices/system/node");

// "0-3,8" as the system writes it; what cannot be read is left out.
std::vector<int> parse_core_list(std::string_view text);

// From now on the calling thread runs on these cores only, as far as the system lets it.
void bind_this_thread(std::span<const int> cores);

}  // namespace echelon
