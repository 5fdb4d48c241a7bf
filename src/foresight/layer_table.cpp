#include "foresight/layer_table.h"

#include <map>

#include "foresight/costs/graph_costs.h"
#include "foresight/costs/measure.h"
#include "graph/program.h"
#include "plan/place.h"

namespace echelon::foresight {

double LayerTable::seconds() const {
  double sum = 0;
  for (const LayerCost& l : layers) sum += l.seconds(1);
  return sum;
}

LayerTable layer_table(const PreparedRun& prepared, const Platform& platform) {
  const std::int64_t samples = micro_batch(prepared);
  LayerTable table = layer_table(optimise(std::move(prepared.model->training(samples).front().graph)), platform);
  table.shards = static_cast<int>(prepared.recipe.train.shards);
  table.samples = samples;
  table.batch = static_cast<double>(prepared.batch_sequence().largest_batch());
  table.slots = make_optim(prepared.recipe).rule->slots().size();
  const ModelSize size = model_size(prepared);
  table.floats = static_cast<double>(size.floats);
  if (platform.is_here())
    table.update = platform.profile()
                       ->ops
                       .of(update_family(prepared.recipe), update_shapes(size.floats, table.shards),
                           {.seconds = {}, .flops = 0, .bytes = 4 * table.floats})
                       .seconds.with(platform.busy(), platform.cores_of(0)) /
                   table.floats;
  return table;
}

LayerTable layer_table(const Graph& graph, const Platform& platform) {
  LayerTable table;
  const int busy = platform.is_here() ? platform.busy() : 1;
  const GraphCosts costs(graph, platform, busy);
  table.slices = slices_of(graph);
  table.work = layer_work(graph);
  std::map<std::string, std::size_t> index;
  for (const LayerWork& w : table.work) {
    index.emplace(w.layer, table.layers.size());
    table.layers.push_back({.name = w.layer, .sends = w.sends});
  }
  // A node of no layer belongs to the one before it.
  std::vector<std::size_t> layer_of;
  std::size_t before = 0;
  for (const Node& node : graph.nodes()) {
    if (const auto it = index.find(node.layer); it != index.end()) before = it->second;
    layer_of.push_back(before);
  }
  std::vector<bool> contributed(static_cast<std::size_t>(graph.values())), read(contributed.size()),
      kept(contributed.size());
  for (const Value v : graph.contributions())
    if (v) contributed[static_cast<std::size_t>(v.id)] = true;
  for (const Node& node : graph.nodes())
    for (const Value v : node.in) {
      read[static_cast<std::size_t>(v.id)] = true;
      const ValueInfo& info = graph.info(v);
      if (node.backward && info.source == ValueInfo::Source::node &&
          !graph.nodes()[static_cast<std::size_t>(info.producer)].backward)
        kept[static_cast<std::size_t>(v.id)] = true;
    }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    LayerCost& layer = table.layers[layer_of[n]];
    bool only_weights = node.backward && !node.out.empty();
    for (const Value v : node.out)
      only_weights =
          only_weights && contributed[static_cast<std::size_t>(v.id)] && !read[static_cast<std::size_t>(v.id)];
    LayerCost::Seconds& pass = !node.backward ? layer.forward : only_weights ? layer.weights : layer.backward;
    (node.slice >= 0 ? pass.split : pass.whole) += costs.seconds(0, n);
    layer.has_weights = layer.has_weights || (!node.backward && node.op->weights_input() >= 0);
    for (const Value v : node.out)
      if (kept[static_cast<std::size_t>(v.id)]) layer.kept += static_cast<double>(graph.type(v).bytes());
    if (node.slice < 0 && table.slices > 1) {  // where slices meet
      bool meets = false;
      for (const Value v : node.in) meets = meets || graph.slice_of(v) >= 0;
      if (meets)
        for (const Value v : node.out) layer.joins += static_cast<double>(graph.type(v).bytes());
    }
  }
  std::vector<bool> counted(graph.parameters().size());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (const Value v : graph.nodes()[n].in) {
      const ValueInfo& info = graph.info(v);
      if (info.source != ValueInfo::Source::parameter || counted[static_cast<std::size_t>(info.producer)]) continue;
      counted[static_cast<std::size_t>(info.producer)] = true;
      LayerCost& layer = table.layers[layer_of[n]];
      (graph.nodes()[n].slice >= 0 ? layer.split_floats : layer.whole_floats) +=
          static_cast<double>(graph.parameters()[static_cast<std::size_t>(info.producer)].shape.elements());
    }
  return table;
}

}  // namespace echelon::foresight
