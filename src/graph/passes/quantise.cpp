#include "graph/passes/quantise.h"

#include <algorithm>
#include <map>

#include "graph/ops/elementwise.h"

namespace echelon {

namespace {

const Node* producer(const Graph& graph, Value v) {
  const ValueInfo& info = graph.info(v);
  return info.source == ValueInfo::Source::node ? &graph.nodes()[static_cast<std::size_t>(info.producer)] : nullptr;
}

// The parameter behind a layer's weights (weight norm may stand between them); empty if there is none.
std::string parameter_behind(const Graph& graph, Value v) {
  while (const Node* node = producer(graph, v)) {
    if (node->in.empty()) return "";
    v = node->in[0];
  }
  const ValueInfo& info = graph.info(v);
  if (info.source != ValueInfo::Source::parameter) return "";
  return graph.parameters()[static_cast<std::size_t>(info.producer)].name;
}

// The weights of a node that is a layer with weights; "no value" for others.
Value weights_of(const Node& node) {
  const int index = node.op->weights_input();
  return index < 0 ? Value{} : node.in[static_cast<std::size_t>(index)];
}

bool is_relu(const Node& node) {
  const auto* program = ops::elementwise_program(*node.op);
  return program && program->size() == 1 && (*program)[0].op == kernels::Ew::relu;
}

// Ops that hand on some of their input's numbers, chosen by order alone: signs may be taken before or after them.
bool keeps_order(const Node& node) {
  return node.op->is_view() || node.op->name() == "max_pool" || node.op->name() == "concat";
}

class Quantise {
 public:
  Quantise(const Graph& graph, const Quantisers& with) : graph_(graph), with_(with), r_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      const Value w = weights_of(node);
      const std::string parameter = w ? parameter_behind(graph_, w) : "";
      if (parameter.empty() || with_.exempt.contains(parameter)) {
        r_.copy(node);
        continue;
      }
      r_.graph().set_layer(node.layer);
      std::vector<Value> in = r_.mapped(node.in);
      if (with_.weights) in[static_cast<std::size_t>(node.op->weights_input())] = weights(w);
      if (with_.activations) in[0] = activation(node.in[0]);
      const Value out = r_.emit(node, node.op, in).front();
      if (with_.errors && r_.graph().training()) r_.map(node.out.front(), with_.errors(r_.graph(), out));
    }
    return r_.finish();
  }

 private:
  Value weights(Value w) {
    Value& made = weights_[w.id];
    if (!made) made = with_.weights(r_.graph(), r_[w]);
    return made;
  }

  Value activation(Value x) {
    if (!with_.network_input && is_network_input(x)) return r_[x];
    const Node* node = producer(graph_, x);
    if (const auto it = activations_.find(x.id); it != activations_.end()) return it->second;
    const bool behind = node && (node->op->is_view() || node->op->name() == "dropout");
    const Value made = behind ? r_.graph().add_one(node->op, {activation(node->in[0])})
                              : with_.activations(r_.graph(), with_.skip_relu ? before_relu(x) : r_[x]);
    return activations_[x.id] = made;
  }

  bool is_network_input(Value x) const {
    const Node* node = producer(graph_, x);
    while (node && node->op->is_view()) node = producer(graph_, x = node->in[0]);
    return !node;
  }

  // The value as it would be without the ReLUs on its way.
  Value before_relu(Value x) {
    const Node* node = producer(graph_, x);
    if (!node) return r_[x];
    if (is_relu(*node)) return r_[node->in[0]];
    if (!keeps_order(*node) || !(x == node->out[0])) return r_[x];
    std::vector<Value> in;
    for (Value v : node->in) in.push_back(before_relu(v));
    return in == r_.mapped(node->in) ? r_[x] : r_.graph().add(node->op, in)[0];
  }

  const Graph& graph_;
  const Quantisers& with_;
  Rewriter r_;
  std::map<int, Value> weights_, activations_;  // by value of the old graph
};

}  // namespace

Graph quantise(const Graph& forward, const Quantisers& with) { return Quantise(forward, with).run(); }

std::vector<std::string> layer_weights(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.backward || !weights_of(node)) continue;
    const std::string name = parameter_behind(graph, weights_of(node));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

Graph without_backward(const Graph& graph) {
  Rewriter r(graph);
  for (const Node& node : graph.nodes())
    if (!node.backward) r.copy(node);
  return r.finish();
}

}  // namespace echelon
