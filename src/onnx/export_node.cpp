#include "onnx/export_node.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace echelon::onnx {

Attribute integer(std::int64_t value) { return {.kind = Attribute::Kind::integer, .integer = value}; }
Attribute real(double value) { return {.kind = Attribute::Kind::real, .real = value}; }
Attribute text(std::string value) { return {.kind = Attribute::Kind::text, .text = std::move(value)}; }
Attribute list(std::vector<std::int64_t> values) {
  return {.kind = Attribute::Kind::integers, .integers = std::move(values)};
}

std::string ExportState::fresh(const std::string& stem) { return fmt::format("{}_{}", stem, ++counter); }

NodeExport::NodeExport(ExportState& state, const echelon::Node& node, int index)
    : state_(state), node_(node), index_(index), attributes_(attributes_of(*node.op)) {
  if (attributes_ != attributes_of(*state.other.nodes()[static_cast<std::size_t>(index)].op))
    refuse("what it does depends on the size of the batch: say --batch N");
}

void NodeExport::refuse(const std::string& why) const {
  bad_input("layer '{}' ({}): {}", node_.layer.empty() ? "(top)" : node_.layer, node_.op->name(), why);
}

const std::string& NodeExport::in(std::size_t i) const { return state_.names.at(node_.in.at(i).id); }
const Shape& NodeExport::shape(std::size_t i) const { return state_.graph.type(node_.in.at(i)).shape; }
const Shape& NodeExport::out_shape(std::size_t i) const { return state_.graph.type(node_.out.at(i)).shape; }

double NodeExport::attribute(const std::string& name) const {
  const auto it = attributes_.find(name);
  invariant(it != attributes_.end(), "an op that is exported tells the attribute that its row asks for");
  return it->second;
}

bool NodeExport::depends_on_batch(Value v, int axis) const {
  return state_.graph.type(v).shape[axis] != state_.other.type(v).shape[axis];
}

std::vector<float> NodeExport::parameter(std::size_t i) const {
  const ValueInfo& info = state_.graph.info(node_.in.at(i));
  if (info.source != ValueInfo::Source::parameter) refuse("its weights are computed, which ONNX has no way to say");
  const auto& entry = state_.table.find(state_.graph.parameters()[static_cast<std::size_t>(info.producer)].name);
  const auto span = state_.parameters.subspan(entry.offset, entry.size);
  return {span.begin(), span.end()};
}

std::string NodeExport::add(const std::string& type, std::vector<std::string> in, OnnxAttributes attributes) {
  return add_many(type, std::move(in), 1, std::move(attributes))[0];
}

std::vector<std::string> NodeExport::add_many(const std::string& type, std::vector<std::string> in, std::size_t outputs,
                                              OnnxAttributes attributes) {
  const std::string stem = node_.layer.empty() ? type : node_.layer + "/" + type;
  Node node{.name = state_.fresh(stem),
            .type = type,
            .domain = {},
            .in = std::move(in),
            .out = {},
            .attributes = std::move(attributes)};
  for (std::size_t i = 0; i < outputs; ++i)
    node.out.push_back(i == 0 ? node.name + "_out" : fmt::format("{}_out{}", node.name, i));
  std::vector<std::string> out = node.out;
  state_.file.nodes.push_back(std::move(node));
  return out;
}

std::string NodeExport::constant(float value) { return constant({}, std::vector<float>{value}); }

std::string NodeExport::constant(const std::vector<std::int64_t>& values) {
  const std::string key = fmt::format("i{}", fmt::join(values, ","));
  std::string& name = state_.constants[key];
  if (name.empty()) {
    name = state_.fresh("shape");
    state_.file.initializers.push_back(integers(name, {std::ssize(values)}, values));
  }
  return name;
}

std::string NodeExport::constant(std::vector<std::int64_t> dims, const std::vector<float>& values) {
  if (values.size() > 1) {
    std::string name = state_.fresh(node_.layer.empty() ? "constant" : node_.layer + "/constant");
    state_.file.initializers.push_back(floats(name, std::move(dims), values));
    return name;
  }
  std::string& name = state_.constants[fmt::format("f{}:{}", fmt::join(dims, ","), values.at(0))];
  if (name.empty()) {
    name = state_.fresh("constant");
    state_.file.initializers.push_back(floats(name, std::move(dims), values));
  }
  return name;
}

void NodeExport::result(const std::string& name, std::size_t output) { state_.names[node_.out.at(output).id] = name; }

std::vector<std::int64_t> NodeExport::open_dims(std::size_t o) const {
  const Value v = node_.out.at(o);
  std::vector<std::int64_t> dims;
  int open = 0;
  for (int i = 0; i < out_shape(o).rank(); ++i) {
    const bool batch = depends_on_batch(v, i);
    open += batch;
    dims.push_back(batch ? -1 : out_shape(o)[i]);
  }
  if (open > 1) refuse("more than one extent of its result depends on the batch: say --batch N");
  return dims;
}

std::string NodeExport::reshaped(const std::string& x, std::size_t o) { return reshaped(x, open_dims(o)); }

std::string NodeExport::reshaped(const std::string& x, std::vector<std::int64_t> dims) {
  return add("Reshape", {x, constant(dims)});
}

std::string NodeExport::with_ones_behind(const std::string& x, int from, int rank) {
  std::vector<std::int64_t> axes;
  for (int i = from; i < rank; ++i) axes.push_back(i);
  return axes.empty() ? x : add("Unsqueeze", {x, constant(axes)});
}

// The batch is the first extent of the file's first input.
std::string NodeExport::filled(float value, std::size_t o) {
  const std::vector<std::int64_t> dims = open_dims(o);
  const OnnxAttributes number{
      {"value", {.kind = Attribute::Kind::tensor, .tensor = {floats("value", {1}, std::vector<float>{value})}}}};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0) {
      parts.push_back(constant(std::vector<std::int64_t>{dims[i]}));
      continue;
    }
    if (state_.file.inputs.empty()) refuse("the batch cannot be seen from an input: say --batch N");
    const std::string all = add("Shape", {state_.file.inputs[0].name}, {{"start", integer(0)}, {"end", integer(1)}});
    const std::int64_t times = out_shape(o)[static_cast<int>(i)] / state_.batch;
    parts.push_back(times == 1 ? all : add("Mul", {all, constant(std::vector<std::int64_t>{times})}));
  }
  return add("ConstantOfShape", {add("Concat", parts, {{"axis", integer(0)}})}, number);
}

void NodeExport::input(const std::string& name) {
  const Value v = node_.out.at(0);
  ValueType type{.name = name, .element = Element::f32, .dims = {}, .names = {}};
  for (int i = 0; i < out_shape().rank(); ++i) {
    const bool batch = depends_on_batch(v, i);
    type.dims.push_back(batch ? -1 : out_shape()[i]);
    type.names.push_back(batch ? "batch" : "");
  }
  state_.file.inputs.push_back(type);
  result(name);
}

}  // namespace echelon::onnx
