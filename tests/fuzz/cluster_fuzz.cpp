// Any text is either refused with BadInput or describes a cluster and faults that can be simulated.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "recipe/cluster_file.h"

int fuzz_cluster(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const ClusterFile file = parse_cluster({reinterpret_cast<const char*>(data), size}, "input");
    invariant(file.cluster.ranks() > 0, "a cluster without ranks was accepted");
  } catch (const BadInput&) {
  }
  return 0;
}
