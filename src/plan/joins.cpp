#include "plan/joins.h"

#include <algorithm>
#include <bit>

#include "graph/ops/shape.h"
#include "graph/ops/slices.h"
#include "graph/slicing.h"

namespace echelon {

namespace {

constexpr std::size_t least_bytes = 4 << 10;  // of a sum that is worth two messages instead of one
constexpr int read_by_nobody = -1, read_elsewhere = -2;

// Whether a node only puts together what several parts have computed.
bool only_joins(const Graph& graph, const Node& node, int slices, int parts) {
  if (ops::is_tree_sum(*node.op) && node.slice >= 0) {  // of a piece, not of a part's own slices
    const auto part_of_slice = [&](Value v) { return graph.slice_of(v) * parts / slices; };
    return std::ranges::any_of(node.in, [&](Value v) { return part_of_slice(v) != part_of_slice(node.in[0]); });
  }
  return node.slice < 0 && (node.op->is_view() || ops::is_tree_sum(*node.op) || node.op->name() == "concat" ||
                            node.op->name() == "relayout");
}

class SumSpreader {
 public:
  SumSpreader(const Graph& graph, const StagePartition& partition, const PartCounts& counts)
      : old_(graph),
        counts_(counts),
        slices_(slices_of(graph)),
        stage_of_(stages_of_nodes(graph, partition)),
        r_(graph) {
    pull_joins(graph, counts, stage_of_);
  }

  Graph run() {
    for (std::size_t n = 0; n < old_.nodes().size(); ++n) {
      const Node& node = old_.nodes()[n];
      if (const int parts = counts_.of(stage_of_[n]); sums_over_parts(old_, stage_of_, counts_, node, parts))
        spread(node, parts);
      else
        copy(node);
    }
    return r_.finish();
  }

 private:
  void copy(const Node& node) {
    r_.copy(node);
    for (Value v : node.out) r_.graph().set_layout(r_[v], old_.type(v).layout);
  }

  void spread(const Node& node, int parts) {
    Graph& g = r_.graph();
    g.set_layer(node.layer);
    g.set_backward(node.backward);
    const int each = slices_ / parts;
    const std::vector<Value> addends = add_own_slices(r_, node, parts);
    const Type& type = old_.type(node.out[0]);
    const bool worth_it = parts > 2 && type.bytes() >= least_bytes && type.elements() >= parts;
    r_.map(node.out[0], worth_it ? in_pieces(addends, each) : whole_sum(addends));
    g.set_slice(-1);
    g.set_backward(false);
  }

  Value whole_sum(const std::vector<Value>& addends) {
    r_.graph().set_slice(-1);
    return ops::tree_sum(r_.graph(), addends);
  }

  Value in_pieces(const std::vector<Value>& addends, int each) {
    Graph& g = r_.graph();
    const auto parts = static_cast<int>(addends.size());
    const Shape shape = g.type(addends[0]).shape;
    const std::int64_t all = shape.elements();
    std::vector<std::int64_t> extents;
    for (int p = 0; p < parts; ++p) extents.push_back(part_begin(all, parts, p + 1) - part_begin(all, parts, p));
    std::vector<std::vector<Value>> pieces;  // by part that has it
    for (int p = 0; p < parts; ++p) {
      g.set_slice(p * each);
      pieces.push_back(ops::split(g, ops::reshape(g, addends[static_cast<std::size_t>(p)], {all}), 0, extents));
    }
    std::vector<Value> sums;
    for (int q = 0; q < parts; ++q) {
      std::vector<Value> of_piece;
      for (const auto& from : pieces) of_piece.push_back(from[static_cast<std::size_t>(q)]);
      g.set_slice(q * each);
      sums.push_back(ops::tree_sum(g, of_piece));
    }
    g.set_slice(-1);
    return ops::reshape(g, ops::concat(g, sums, 0), shape);
  }

  const Graph& old_;
  const PartCounts& counts_;
  const int slices_;
  std::vector<int> stage_of_;
  Rewriter r_;
};

}  // namespace

bool sums_over_parts(const Graph& graph, const std::vector<int>& stage_of, const PartCounts& counts, const Node& node,
                     int parts) {
  if (parts == 1 || node.slice >= 0 || !ops::is_tree_sum(*node.op)) return false;
  const auto slices = static_cast<int>(node.in.size());
  if (slices != slices_of(graph) || slices % parts != 0) return false;
  if (!std::has_single_bit(static_cast<unsigned>(slices / parts))) return false;
  for (int s = 0; s < slices; ++s) {
    const ValueInfo& info = graph.info(node.in[static_cast<std::size_t>(s)]);
    if (info.source != ValueInfo::Source::node) return false;
    const Node& from = graph.nodes()[static_cast<std::size_t>(info.producer)];
    if (from.slice != s || counts.ways.contains(from.layer)) return false;
    if (counts.of(stage_of[static_cast<std::size_t>(info.producer)]) != parts) return false;
    if (info.type.layout != Layout::plain) return false;
  }
  return true;
}

std::vector<Value> add_own_slices(Rewriter& r, const Node& node, int parts) {
  Graph& g = r.graph();
  const int each = static_cast<int>(node.in.size()) / parts;
  std::vector<Value> addends;
  for (int part = 0; part < parts; ++part) {
    std::vector<Value> own;
    for (int s = part * each; s < (part + 1) * each; ++s) own.push_back(r[node.in[static_cast<std::size_t>(s)]]);
    g.set_slice(part * each);
    addends.push_back(each == 1 ? own[0] : ops::tree_sum(g, own));
  }
  return addends;
}

void pull_joins(const Graph& graph, const PartCounts& counts, std::vector<int>& stage_of) {
  if (counts.of_stage.size() < 2 || counts.parts == 1) return;
  const int slices = slices_of(graph);
  // By value: the one stage that reads it.
  std::vector<int> reader(static_cast<std::size_t>(graph.values()), read_by_nobody);
  const auto reads = [&](Value v, int stage) {
    int& r = reader[static_cast<std::size_t>(v.id)];
    r = r == read_by_nobody || r == stage ? stage : read_elsewhere;
  };
  for (const auto& [name, v] : graph.outputs()) reads(v, read_elsewhere);
  for (Value c : graph.contributions())
    if (c) reads(c, read_elsewhere);
  for (const auto& c : graph.carries()) reads(c.to, read_elsewhere);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (only_joins(graph, node, slices, counts.of(stage_of[n])) && node.out.size() == 1) {
      const int to = reader[static_cast<std::size_t>(node.out[0].id)];
      if (to >= 0 && counts.of(to) <= counts.of(stage_of[n]) && (node.backward ? to < stage_of[n] : to > stage_of[n]))
        stage_of[n] = to;
    }
    for (Value v : node.in)
      if (v) reads(v, stage_of[n]);
  }
}

Graph spread_sums(const Graph& graph, const StagePartition& partition, const PartCounts& counts) {
  return counts.parts == 1 ? graph : SumSpreader(graph, partition, counts).run();
}

}  // namespace echelon
