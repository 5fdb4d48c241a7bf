#include "parallel/step/thin_product.h"

#include "graph/ops/linear.h"
#include "parallel/step/trainer_phase.h"

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

std::vector<ThinProduct> Trainer::thin_products() {
  TrainerPhase& phase = *phases_.front();
  phase.plans.prepare(1);
  std::vector<ThinProduct> products;
  for_each_thin_product(phase.plans.at(1).graph, table_,
                        [&](const ThinProduct& p, std::size_t) { products.push_back(p); });
  return products;
}

void Trainer::give_factors(std::function<bool(const FactorSlice&)> take) { take_factors_ = std::move(take); }

// True if they were taken, so that nobody has to multiply them.
bool Trainer::offer_factors(TrainerPhase& phase, const Executor& executor, const data::Batch& batch,
                            std::uint64_t shard, std::size_t node) {
  if (!take_factors_) return false;
  const data::Slice slice = batch.slice(shard);
  const int product = phase.node_actions.at(static_cast<std::int64_t>(slice.count))[node].product;
  if (product < 0) return false;
  const Operands& o = executor.operands(node);
  const auto rows = static_cast<std::size_t>(o.in[0].type.shape[0]);
  return take_factors_({.product = static_cast<std::size_t>(product),
                        .first_row = (slice.first - batch.cursor().samples.first) * (rows / slice.count),
                        .rows = rows,
                        .errors = o.in[0].f32(),
                        .inputs = o.in[1].f32()});
}

}  // namespace echelon
