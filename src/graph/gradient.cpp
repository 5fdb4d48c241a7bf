#include "graph/gradient.h"

#include <map>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/slices.h"

namespace echelon {

namespace {

// d(loss)/d(loss), scaled: the one number that depends on how large the global batch is.
class LossSeed : public Op {
 public:
  std::string_view name() const override { return "loss_seed"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32({1})}; }
  Kernel compile(const Operands& o) const override {
    return [y = o.out[0].f32()](const StepContext& step) { *y = step.loss_scale; };
  }
};

// Which values lie on a path from a wanted weight: only their gradients are worth computing.
std::vector<bool> depends_on_wanted(const Graph& graph, const std::function<bool(const Parameter&)>& wanted) {
  std::vector<bool> depends(static_cast<std::size_t>(graph.values()), false);
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Parameter& p = graph.parameters()[i];
    if (p.kind == Parameter::Kind::weight && wanted(p))
      depends[static_cast<std::size_t>(graph.parameter_value(i).id)] = true;
  }
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (Value v : node.in) any = any || depends[static_cast<std::size_t>(v.id)];
    if (!any) continue;
    for (Value v : node.out)
      if (graph.type(v).dtype == DType::f32) depends[static_cast<std::size_t>(v.id)] = true;
  }
  return depends;
}

}  // namespace

void differentiate(Graph& graph, Value loss, const std::function<bool(const Parameter&)>& wanted) {
  if (graph.type(loss).elements() != 1)
    bad_input("a loss must be one number, but it has the shape {}", to_string(graph.type(loss).shape));
  const std::vector<bool> depends = depends_on_wanted(graph, wanted);
  std::vector<Value> d(static_cast<std::size_t>(graph.values()));
  auto needs = [&](Value v) {
    return v && static_cast<std::size_t>(v.id) < depends.size() && depends[static_cast<std::size_t>(v.id)];
  };
  // A value that is read in several places gets the sum of what comes back from each, in a fixed order: first within
  // a slice, then over the slices that read a value which belongs to none of them.
  std::map<int, std::map<int, Value>> from_slices;  // by value and slice
  auto arrive = [&](Value v, Value contribution, int slice) {
    const int own = graph.slice_of(v);
    const bool apart = own < 0 && slice >= 0;
    Value& sum = apart ? from_slices[v.id][slice] : d[static_cast<std::size_t>(v.id)];
    graph.set_slice(apart ? slice : own);
    sum = sum ? ops::add(graph, sum, contribution) : contribution;
  };
  auto arrived = [&](Value v) {
    Value& sum = d[static_cast<std::size_t>(v.id)];
    const auto it = from_slices.find(v.id);
    if (it == from_slices.end()) return sum;
    std::vector<Value> parts;
    for (const auto& [slice, part] : it->second) parts.push_back(part);
    if (graph.info(v).source == ValueInfo::Source::parameter)
      graph.set_layer(graph.nodes()[static_cast<std::size_t>(graph.info(parts[0]).producer)].layer);
    graph.set_slice(-1);
    const Value slices = parts.size() == 1 ? parts[0] : ops::tree_sum(graph, parts);
    sum = sum ? ops::add(graph, sum, slices) : slices;
    from_slices.erase(it);
    return sum;
  };

  graph.set_backward(true);
  if (needs(loss)) arrive(loss, graph.add_one(std::make_shared<LossSeed>(), {}), -1);
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node node = graph.nodes()[i];  // a copy: adding nodes moves the originals
    if (node.backward) continue;
    std::vector<bool> wants;
    bool any_wanted = false, any_arrived = false;
    for (Value v : node.in) wants.push_back(needs(v)), any_wanted = any_wanted || wants.back();
    std::vector<Value> d_out;
    graph.set_layer(node.layer);
    for (Value v : node.out) d_out.push_back(arrived(v)), any_arrived |= bool(d_out.back());
    if (!any_wanted || !any_arrived) continue;
    graph.set_slice(node.slice);
    const auto d_in = node.op->gradient(graph, node, d_out, wants);
    invariant(d_in.size() == node.in.size(), "a gradient per input");
    for (std::size_t k = 0; k < d_in.size(); ++k)
      if (wants[k] && d_in[k]) arrive(node.in[k], d_in[k], node.slice);
  }

  // A weight that several slices read: what they sent back is added up before anything is handed out.
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    if (needs(graph.parameter_value(i))) arrived(graph.parameter_value(i));
  // Each contribution needs memory of its own: two parameters may have been handed the same value.
  std::vector<bool> taken(static_cast<std::size_t>(graph.values()), false);
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Value p = graph.parameter_value(i);
    Value g = needs(p) ? d[static_cast<std::size_t>(p.id)] : Value{};
    if (!g) continue;
    graph.set_slice(graph.slice_of(g));
    if (taken[static_cast<std::size_t>(g.id)] || graph.info(g).source != ValueInfo::Source::node)
      g = ops::copy(graph, g);
    else
      taken[static_cast<std::size_t>(g.id)] = true;
    graph.set_contribution(p, g);
  }
  graph.set_backward(false);
  graph.set_slice(-1);
  graph.set_layer("");
}

void differentiate(Graph& graph, Value loss) {
  differentiate(graph, loss, [](const Parameter&) { return true; });
}

}  // namespace echelon
