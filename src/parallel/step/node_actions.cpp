#include "parallel/step/node_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/step/thin_product.h"

namespace echelon {

namespace {

// The node after which a parameter's contribution is complete, for every parameter of the graph; -1: it has none.
std::vector<int> completing_nodes(const Graph& graph) {
  std::vector<int> nodes;
  for (const auto& contribution : graph.contributions()) {
    nodes.push_back(-1);
    if (!contribution) continue;
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      if (std::ranges::find(graph.nodes()[n].out, contribution) != graph.nodes()[n].out.end())
        nodes.back() = static_cast<int>(n);
  }
  return nodes;
}

double flops_of(const Graph& graph, const Node& node) {
  return node.op->flops(graph.types(node.in), graph.types(node.out));
}

std::vector<Range> parameters_read(const Graph& graph, const ParameterTable& table, const Node& node) {
  std::vector<Range> reads;
  if (node.backward) return reads;
  for (const Value v : node.in) {
    if (graph.info(v).source != ValueInfo::Source::parameter) continue;
    const auto& name = graph.parameters()[static_cast<std::size_t>(graph.info(v).producer)].name;
    const ParameterTable::Entry& e = table.find(name);
    reads.push_back({e.offset, e.offset + e.size});
  }
  return reads;
}

}  // namespace

std::vector<NodeActions> node_actions(const Graph& graph, const ParameterTable& table,
                                      const std::vector<Bucket>& buckets) {
  std::vector<NodeActions> list;
  for (const Node& node : graph.nodes())
    list.push_back({.status = fmt::format("{} of {}", node.backward ? "backward" : "forward",
                                          node.layer.empty() ? node.op->name() : node.layer),
                    .flops = flops_of(graph, node),
                    .completes = {},
                    .reads = parameters_read(graph, table, node)});
  int product = 0;
  for_each_thin_product(graph, table, [&](const ThinProduct&, std::size_t node) { list[node].product = product++; });
  const std::vector<int> nodes = completing_nodes(graph);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    int last = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t offset = table.find(graph.parameters()[i].name).offset;
      if (offset >= buckets[b].begin && offset < buckets[b].end) last = std::max(last, nodes[i]);
    }
    list[static_cast<std::size_t>(last)].completes.push_back(b);
  }
  return list;
}

std::vector<ReadyPiece> ready_pieces(const Graph& graph, const ParameterTable& table, double speed, double start) {
  std::vector<double> after(graph.nodes().size());
  double time = start;
  for (std::size_t n = 0; n < after.size(); ++n) after[n] = time += flops_of(graph, graph.nodes()[n]) / speed;
  std::vector<ReadyPiece> pieces;
  const std::vector<int> nodes = completing_nodes(graph);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] < 0) continue;
    const ParameterTable::Entry& e = table.find(graph.parameters()[i].name);
    pieces.push_back({e.offset, e.offset + e.size, after[static_cast<std::size_t>(nodes[i])]});
  }
  return pieces;
}

std::vector<ForwardNode> forward_nodes(const Graph& graph, const ParameterTable& table,
                                       std::vector<std::size_t>& nodes) {
  std::vector<ForwardNode> list;
  std::vector<std::size_t> place(graph.nodes().size());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.backward) continue;
    ForwardNode& forward = list.emplace_back();
    forward.reads = parameters_read(graph, table, node);
    for (const Value v : node.in)
      if (graph.info(v).source == ValueInfo::Source::node)
        forward.after.push_back(place[static_cast<std::size_t>(graph.info(v).producer)]);
    place[n] = list.size() - 1;
    nodes.push_back(n);
  }
  return list;
}

std::vector<Range> reading_order(const Graph& graph, const ParameterTable& table) {
  std::vector<Range> order;
  for (const Node& node : graph.nodes())
    for (const Range& r : parameters_read(graph, table, node))
      if (std::ranges::find(order, r.begin, &Range::begin) == order.end()) order.push_back(r);
  return order;
}

}  // namespace echelon
