#include "plan/layer_splits.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "graph/ops/slices.h"

namespace echelon {

namespace {

// Whether a slice's node reads weights that no other slice does.
bool has_own_weights(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.in, [&](Value weights) {
    return graph.info(weights).source == ValueInfo::Source::parameter &&
           std::ranges::none_of(graph.nodes(), [&](const Node& other) {
             return other.slice >= 0 && other.slice != node.slice && std::ranges::count(other.in, weights) > 0;
           });
  });
}

// What the slices of a node are; empty: it follows what it reads.
LayerSplit split_of(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name();
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, op) != names.end();
  };
  if (is({"attention", "cross_attention"})) return {"heads", "heads"};
  if (is({"embedding"})) return {"vocabulary", "vocabulary"};
  if (is({"class_scores"})) return {"vocabulary", "vocabulary"};
  if (is({"expert_linear", "dispatch", "combine"})) return {"experts", "experts"};
  if (is({"lstm", "gru", "rnn", "lstm_cell", "gru_cell", "rnn_cell"})) return {"units", "units"};
  if (is({"conv2d", "conv2d_relu"}))
    return has_own_weights(graph, node) ? LayerSplit{"channels", "channels"} : LayerSplit{"rows", "height"};
  if (is({"unshared_conv2d"})) return {"rows", "height"};
  if (is({"linear", "linear_relu", "matmul"})) return {"out", "hidden"};  // "in" where a tree_sum adds them up
  return {};
}

bool passes_on(const Node& node) { return node.op->is_view() || (node.in.size() == 1 && node.out.size() == 1); }

// Matrices next to the attention have its heads as a dimension, those next to an embedding or the loss its vocabulary.
void name_dimensions(const Graph& graph, std::map<std::string, LayerSplit>& splits) {
  const auto& nodes = graph.nodes();
  std::vector<std::string> beside(static_cast<std::size_t>(graph.values()));
  const auto hidden = [&](const Node& node) -> LayerSplit* {
    const auto it = node.slice < 0 ? splits.end() : splits.find(node.layer);
    return it == splits.end() || it->second.dimension != "hidden" ? nullptr : &it->second;
  };
  const auto own = [&](const Node& node) {
    const LayerSplit s = node.slice < 0 ? LayerSplit{} : split_of(graph, node);
    return s.dimension == "heads" || (s.dimension == "vocabulary" && node.op->name() != "embedding") ? s.dimension : "";
  };
  for (const Node& node : nodes) {  // what comes after
    if (node.backward) continue;
    std::string from = own(node);
    if (from == "vocabulary") from.clear();
    if (!node.in.empty() && !beside[static_cast<std::size_t>(node.in[0].id)].empty()) {
      const std::string& tag = beside[static_cast<std::size_t>(node.in[0].id)];
      if (LayerSplit* s = hidden(node))
        s->dimension = tag;
      else if (passes_on(node))
        from = tag;
    }
    for (Value v : node.out) beside[static_cast<std::size_t>(v.id)] = from;
  }
  std::ranges::fill(beside, "");
  for (std::size_t n = nodes.size(); n-- > 0;) {  // what comes before
    const Node& node = nodes[n];
    if (node.backward) continue;
    std::string to = own(node);
    for (Value v : node.out)
      if (const std::string& tag = beside[static_cast<std::size_t>(v.id)]; to.empty() && !tag.empty()) {
        if (LayerSplit* s = hidden(node))
          s->dimension = tag;
        else if (passes_on(node))
          to = tag;
      }
    if (!to.empty())
      for (Value v : node.in) beside[static_cast<std::size_t>(v.id)] = to;
  }
}

}  // namespace

const std::vector<std::string>& split_names() {
  static const std::vector<std::string> names{"out",     "in",   "heads", "vocabulary", "channels", "units",
                                              "experts", "rows", "grid",  "batch",      "none"};
  return names;
}

std::map<std::string, LayerSplit> layer_splits(const Graph& graph) {
  std::map<std::string, LayerSplit> splits;
  for (const Node& node : graph.nodes()) {
    if (node.backward || node.layer.empty()) continue;
    if (node.slice >= 0) {
      LayerSplit s = split_of(graph, node);
      LayerSplit& known = splits[node.layer];
      const bool matrix = known.dimension == "hidden";  // of a layer that is more than that: a cell, experts
      if (!s.split.empty() && (known.split.empty() || (matrix && s.dimension != "hidden"))) known = std::move(s);
      if (known.split == "out" && ops::is_tree_sum(*node.op)) known.split = "grid";
    } else if (node.op->name() == "tree_sum") {
      if (const auto it = splits.find(node.layer); it != splits.end() && it->second.split == "out")
        it->second.split = "in";
    }
  }
  std::erase_if(splits, [](const auto& s) { return s.second.split.empty(); });
  name_dimensions(graph, splits);
  return splits;
}

}  // namespace echelon
