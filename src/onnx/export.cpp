#include "onnx/export.h"

#include "base/error.h"
#include "graph/passes/prune.h"
#include "onnx/export_node.h"
#include "onnx/export_ops.h"

namespace echelon::onnx {
namespace {

ValueType value_type(const ExportState& s, Value v, const std::string& name) {
  const Type& type = s.graph.type(v);
  ValueType out{
      .name = name, .element = type.dtype == DType::i32 ? Element::i32 : Element::f32, .dims = {}, .names = {}};
  for (int i = 0; i < type.shape.rank(); ++i) {
    const bool open = type.shape[i] != s.other.type(v).shape[i];
    out.dims.push_back(open ? -1 : type.shape[i]);
    out.names.push_back(!open                      ? ""
                        : type.shape[i] == s.batch ? "batch"
                                                   : fmt::format("batch*{}", type.shape[i] / s.batch));
  }
  return out;
}

void add_parameters(ExportState& s) {
  for (std::size_t i = 0; i < s.graph.parameters().size(); ++i) {
    const Parameter& p = s.graph.parameters()[i];
    const auto& entry = s.table.find(p.name);
    s.file.initializers.push_back(
        floats(p.name, {p.shape.dims().begin(), p.shape.dims().end()}, s.parameters.subspan(entry.offset, entry.size)));
    s.names[s.graph.parameter_value(i).id] = p.name;
  }
}

// Weights of which only an altered copy is in use (a recurrent layer's, in ONNX's order) need not be stored twice.
void drop_unused_initializers(Model& file) {
  std::map<std::string, bool> used;
  for (const Node& n : file.nodes)
    for (const std::string& in : n.in) used[in] = true;
  for (const ValueType& v : file.outputs) used[v.name] = true;
  std::erase_if(file.initializers, [&](const Tensor& t) { return !used.contains(t.name); });
}

void add_output(ExportState& s, const std::string& name, Value v) {
  s.file.nodes.push_back({.name = "output/" + name,
                          .type = "Identity",
                          .domain = {},
                          .in = {s.names.at(v.id)},
                          .out = {name},
                          .attributes = {}});
  s.file.outputs.push_back(value_type(s, v, name));
}

}  // namespace

const ExportRow* find_export(std::string_view op) {
  for (const auto rows : {plain_rows(), feature_rows(), sequence_rows(), quantised_rows()})
    for (const ExportRow& row : rows)
      if (row.op == op) return &row;
  return nullptr;
}

Model export_model(const models::Model& model, const ParameterTable& table, std::span<const float> parameters,
                   const ExportOptions& options) {
  if (options.batch < 0 || options.batch > 1 << 20) bad_input("a batch of {} samples cannot be", options.batch);
  const std::int64_t batch = options.batch > 0 ? options.batch : 3;
  const Graph graph = prune(model.prediction(batch));
  const Graph other = options.batch > 0 ? graph : prune(model.prediction(batch + 2));
  invariant(graph.nodes().size() == other.nodes().size(), "a model is the same network at every batch size");
  Model file;
  file.producer = "echelon";
  file.graph_name = model.name();
  file.metadata["echelon.model"] = model.name();
  file.metadata["echelon.task"] = std::string(models::name_of(model.task()));
  ExportState state{.graph = graph,
                    .other = other,
                    .table = table,
                    .parameters = parameters,
                    .file = file,
                    .names = {},
                    .batch = batch};
  for (const Graph::Input& input : graph.inputs()) {
    file.inputs.push_back(value_type(state, input.value, input.name));
    state.names[input.value.id] = input.name;
  }
  add_parameters(state);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const echelon::Node& node = graph.nodes()[i];
    const ExportRow* row = find_export(node.op->name());
    if (!row)
      bad_input("layer '{}' ({}): there is no ONNX for this op (src/onnx/export_ops.h has the table)", node.layer,
                node.op->name());
    NodeExport one(state, node, static_cast<int>(i));
    row->write(one);
  }
  for (const auto& [name, value] : graph.outputs()) add_output(state, name, value);
  for (const Graph::Carry& c : graph.carries()) add_output(state, c.name + ".next", c.to);
  drop_unused_initializers(file);
  return file;
}

}  // namespace echelon::onnx
