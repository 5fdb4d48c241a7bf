#include "graph/passes/prune.h"

namespace echelon {

Graph prune(const Graph& graph) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.values()), false);
  auto need = [&](Value v) {
    if (v) needed[static_cast<std::size_t>(v.id)] = true;
  };
  for (const auto& [name, v] : graph.outputs()) need(v);
  for (Value v : graph.contributions()) need(v);
  for (const auto& c : graph.carries()) need(c.to);

  const auto& nodes = graph.nodes();
  std::vector<bool> keep(nodes.size(), false);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    for (Value v : nodes[i].out) keep[i] = keep[i] || needed[static_cast<std::size_t>(v.id)];
    if (keep[i])
      for (Value v : nodes[i].in) need(v);
  }
  Rewriter r(graph);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (keep[i]) r.copy(nodes[i]);
  return r.finish();
}

}  // namespace echelon
