#include "parallel/step/thin_product.h"

#include "graph/ops/linear.h"

namespace echelon {

void for_each_thin_product(const Graph& graph, const ParameterTable& table,
                           const std::function<void(const ThinProduct&, std::size_t)>& f) {
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Value gradient = graph.contributions()[i];
    if (!gradient || graph.info(gradient).source != ValueInfo::Source::node) continue;
    const auto n = static_cast<std::size_t>(graph.info(gradient).producer);
    const Node& node = graph.nodes()[n];
    if (!ops::is_transposed_product(*node.op)) continue;  // a sum of products, if the weights are used twice
    const Shape &errors = graph.type(node.in[0]).shape, &inputs = graph.type(node.in[1]).shape;
    const ParameterTable::Entry& e = table.find(graph.parameters()[i].name);
    f({.name = e.parameter.name,
       .range = {e.offset, e.offset + e.size},
       .out = static_cast<std::size_t>(errors[1]),
       .in = static_cast<std::size_t>(inputs[1]),
       .rows = static_cast<std::size_t>(errors[0])},
      n);
  }
}

}  // namespace echelon
