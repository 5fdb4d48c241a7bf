// Any text is either refused with BadInput or is a list of edges; and any number of workers that it suits mixes with
// weights that keep the mean. The first byte is the number of workers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "parallel/exchanges/peer_graph.h"

int fuzz_graph(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size == 0 || size > 2000) return 0;  // every worker looks at every edge
  const int workers = 1 + data[0] % 24;
  try {
    const auto edges = parse_edges({reinterpret_cast<const char*>(data + 1), size - 1});
    for (const auto& [a, b] : edges) invariant(a >= 0 && b >= 0 && a != b, "an edge joins two workers");
    if (!PeerGraph::problem(PeerGraph::Kind::edges, workers, edges).empty()) return 0;
    const PeerGraph graph(PeerGraph::Kind::edges, workers, edges);
    std::vector<double> column(static_cast<std::size_t>(workers));
    for (int w = 0; w < workers; ++w) {
      const PeerGraph::Round round = graph.round(w, 0);
      double row = round.own;
      column[static_cast<std::size_t>(w)] += round.own;
      for (const PeerGraph::Link& link : round.from) {
        invariant(link.weight > 0 && link.peer != w, "neighbours count");
        row += link.weight;
        column[static_cast<std::size_t>(link.peer)] += link.weight;
      }
      invariant(round.own > 0 && std::abs(row - 1) < 1e-9, "a worker's parts make a whole");
    }
    invariant(std::ranges::all_of(column, [](double sum) { return std::abs(sum - 1) < 1e-9; }),
              "mixing keeps the mean");
  } catch (const BadInput&) {
  }
  return 0;
}
