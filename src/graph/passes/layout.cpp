#include "graph/passes/layout.h"

#include <map>

#include "graph/ops/shape.h"

namespace echelon {

Graph choose_layouts(const Graph& graph) {
  Rewriter r(graph);
  Graph& now = r.graph();
  // Each (value, layout) is made at most once, however many nodes want it.
  std::map<std::pair<int, Layout>, Value> made;
  auto in_layout = [&](Value v, Layout wanted) {
    if (now.type(v).layout == wanted) return v;
    Value& there = made[{v.id, wanted}];
    now.set_slice(now.slice_of(v));  // not the reader's: other slices may read it too
    if (!there) there = ops::relayout(now, v, wanted);
    return there;
  };

  for (const Node& node : graph.nodes()) {
    std::vector<Value> in = r.mapped(node.in);
    const Layouts wish = node.op->layouts(now.types(in), graph.types(node.out));
    now.set_layer(node.layer);
    now.set_backward(node.backward);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = in_layout(in[i], wish.in[i]);
    const auto out = r.emit(node, node.op, in);
    for (std::size_t i = 0; i < out.size(); ++i) now.set_layout(out[i], wish.out[i]);
  }
  // The outside world reads plain memory.
  auto make_plain = [&](Value old) {
    if (old) r.map(old, in_layout(r[old], Layout::plain));
  };
  now.set_layer("output");
  for (const auto& [name, v] : graph.outputs()) make_plain(v);
  for (Value v : graph.contributions()) make_plain(v);
  for (const auto& c : graph.carries()) {
    if (const ValueInfo& next = graph.info(c.to); next.source == ValueInfo::Source::node)
      now.set_layer(graph.nodes()[static_cast<std::size_t>(next.producer)].layer);  // a stage reads what it carried on
    make_plain(c.to);
  }
  return r.finish();
}

}  // namespace echelon
