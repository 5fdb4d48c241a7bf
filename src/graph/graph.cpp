#include "graph/graph.h"

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/text.h"
#include "graph/size_limit.h"

namespace echelon {

namespace {
// More operations are no network that could be trained, and passes look at every pair of values that live together.
constexpr std::size_t most_nodes = 1 << 16;
}  // namespace

std::string to_string(const Type& type) {
  std::string text = fmt::format("{}{}", name_of(type.dtype), to_string(type.shape));
  if (type.layout != Layout::plain) text += fmt::format(" {}", name_of(type.layout));
  return text;
}

void check_size(const Type& type) {
  if (const std::int64_t elements = type.elements(); elements < 0 || elements > most_elements)
    throw TooLarge(fmt::format("{} would be {} elements; a tensor has at most {}", to_string(type.shape),
                               human_count(static_cast<double>(elements)),
                               human_count(static_cast<double>(most_elements))));
}

std::vector<Value> Op::gradient(Graph&, const Node&, std::span<const Value>, const std::vector<bool>&) const {
  bad_input("operation '{}' has no gradient", name());
}

Layouts Op::layouts(std::span<const Type> in, std::span<const Type> out) const {
  return {std::vector<Layout>(in.size(), Layout::plain), std::vector<Layout>(out.size(), Layout::plain)};
}

Layouts follow_inputs(std::span<const Type> in, std::span<const Type> out) {
  Layout chosen = Layout::plain;
  for (const Type& t : in)
    if (chosen == Layout::plain) chosen = t.layout;
  auto for_each = [&](std::span<const Type> types) {
    std::vector<Layout> layouts;
    for (const Type& t : types) layouts.push_back(t.shape.rank() == 4 ? chosen : Layout::plain);
    return layouts;
  };
  return {for_each(in), for_each(out)};
}

Value Graph::new_value(const Type& type, ValueInfo::Source source, int producer) {
  values_.push_back({type, source, producer});
  return {static_cast<int>(values_.size()) - 1};
}

Value Graph::input(const std::string& name, const Type& type) {
  try {
    check_size(type);
  } catch (const TooLarge& problem) {
    throw TooLarge(fmt::format("input '{}': {}", name, problem.what()));
  }
  const Value v = new_value(type, ValueInfo::Source::input, static_cast<int>(inputs_.size()));
  inputs_.push_back({name, v});
  return v;
}

Value Graph::parameter(const Parameter& parameter) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == parameter.name) {
      if (!(parameters_[i].shape == parameter.shape))
        bad_input("parameter '{}' is used with two shapes, {} and {}", parameter.name, to_string(parameters_[i].shape),
                  to_string(parameter.shape));
      return parameter_values_[i];
    }
  try {
    check_size(f32(parameter.shape));
  } catch (const TooLarge& problem) {
    throw TooLarge(fmt::format("parameter '{}': {}", parameter.name, problem.what()));
  }
  const Value v = new_value(f32(parameter.shape), ValueInfo::Source::parameter, static_cast<int>(parameters_.size()));
  parameters_.push_back(parameter);
  parameter_values_.push_back(v);
  contributions_.push_back({});
  return v;
}

Value Graph::carry(const std::string& name, const Type& type) {
  const Value v = input(name, type);
  carries_.push_back({name, v, v});
  return v;
}

void Graph::carry_on(Value from, Value to) {
  for (Carry& c : carries_)
    if (c.from == from) c.to = to;
}

std::vector<Value> Graph::add(std::shared_ptr<const Op> op, std::vector<Value> in) {
  std::vector<Type> out_types;
  const auto in_types = types(in);
  try {
    out_types = op->infer(in_types);
    for (const Type& t : out_types) check_size(t);
  } catch (const TooLarge& problem) {
    throw TooLarge(fmt::format("layer '{}' ({}): {}", layer_.empty() ? "(top)" : layer_, op->name(), problem.what()));
  } catch (const BadInput& problem) {
    throw BadInput(fmt::format("layer '{}' ({}): {}", layer_.empty() ? "(top)" : layer_, op->name(), problem.what()));
  }
  if (nodes_.size() >= most_nodes)
    throw TooLarge(fmt::format("layer '{}': the network has more than {} operations; make it smaller",
                               layer_.empty() ? "(top)" : layer_, most_nodes));
  Node node{std::move(op), std::move(in), {}, layer_, backward_, slice_};
  for (const Type& t : out_types)
    node.out.push_back(new_value(t, ValueInfo::Source::node, static_cast<int>(nodes_.size())));
  nodes_.push_back(std::move(node));
  return nodes_.back().out;
}

void Graph::set_contribution(Value parameter, Value contribution) {
  const ValueInfo& i = info(parameter);
  invariant(i.source == ValueInfo::Source::parameter, "only a parameter has a contribution");
  contributions_[static_cast<std::size_t>(i.producer)] = contribution;
}

Graph::Scope::Scope(Graph& graph, const std::string& name) : graph_(graph), length_(graph.layer_.size()) {
  if (!graph.layer_.empty() && !name.empty()) graph.layer_ += '.';
  graph.layer_ += name;
}

Graph::Scope::~Scope() { graph_.layer_.resize(length_); }

std::string Graph::unique_name(const std::string& base) {
  const int n = ++names_[layer_ + "." + base];
  return n == 1 ? base : fmt::format("{}{}", base, n);
}

int Graph::slice_of(Value v) const {
  const ValueInfo& i = info(v);
  return i.source == ValueInfo::Source::node ? nodes_[static_cast<std::size_t>(i.producer)].slice : -1;
}

std::vector<Type> Graph::types(std::span<const Value> vs) const {
  std::vector<Type> result;
  for (Value v : vs) result.push_back(type(v));
  return result;
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> uses(values_.size(), 0);
  auto count = [&](Value v) {
    if (v) ++uses[static_cast<std::size_t>(v.id)];
  };
  for (const Node& node : nodes_)
    for (Value v : node.in) count(v);
  for (const auto& [name, v] : outputs_) count(v);
  for (Value v : contributions_) count(v);
  for (const Carry& c : carries_) count(c.to);
  return uses;
}

Rewriter::Rewriter(const Graph& old) : old_(old), new_(old.training()), map_(static_cast<std::size_t>(old.values())) {
  for (const auto& i : old.inputs()) map(i.value, new_.input(i.name, old.type(i.value)));
  for (std::size_t i = 0; i < old.parameters().size(); ++i)
    map(old.parameter_value(i), new_.parameter(old.parameters()[i]));
  new_.names_ = old.names_;
}

std::vector<Value> Rewriter::mapped(std::span<const Value> old) const {
  std::vector<Value> result;
  for (Value v : old) result.push_back(v ? (*this)[v] : v);
  return result;
}

void Rewriter::copy(const Node& node) { emit(node, node.op, mapped(node.in)); }

std::vector<Value> Rewriter::emit(const Node& node, std::shared_ptr<const Op> op, std::vector<Value> in) {
  new_.layer_ = node.layer;
  new_.backward_ = node.backward;
  new_.slice_ = node.slice;
  auto out = new_.add(std::move(op), std::move(in));
  for (std::size_t i = 0; i < node.out.size() && i < out.size(); ++i) map(node.out[i], out[i]);
  return out;
}

Graph Rewriter::finish() {
  for (const auto& [name, v] : old_.outputs()) new_.set_output(name, (*this)[v]);
  for (std::size_t i = 0; i < old_.contributions().size(); ++i)
    if (const Value c = old_.contributions()[i]) new_.contributions_[i] = (*this)[c];
  for (const auto& c : old_.carries()) new_.carries_.push_back({c.name, (*this)[c.from], (*this)[c.to]});
  new_.layer_.clear();
  new_.backward_ = false;
  new_.slice_ = -1;
  return std::move(new_);
}

std::string to_string(const Graph& graph) {
  auto list = [&](std::span<const Value> vs) {
    std::vector<std::string> names;
    for (Value v : vs) {
      const ValueInfo& i = graph.info(v);
      const auto index = static_cast<std::size_t>(i.producer);
      names.push_back(i.source == ValueInfo::Source::input       ? graph.inputs()[index].name
                      : i.source == ValueInfo::Source::parameter ? graph.parameters()[index].name
                                                                 : fmt::format("%{}", v.id));
    }
    return fmt::format("{}", fmt::join(names, ", "));
  };
  std::string text;
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> types;
    for (Value v : node.out) types.push_back(to_string(graph.type(v)));
    text += fmt::format("{} = {}{}({}) : {}  # {}{}{}\n", list(node.out), node.op->name(),
                        node.op->detail().empty() ? "" : " <" + node.op->detail() + ">", list(node.in),
                        fmt::join(types, ", "), node.layer, node.slice < 0 ? "" : fmt::format(" slice {}", node.slice),
                        node.backward ? " (backward)" : "");
  }
  return text;
}

}  // namespace echelon
