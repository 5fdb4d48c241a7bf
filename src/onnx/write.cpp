// From a Model to the bytes of a file; the field numbers are those of onnx.proto.
#include "base/error.h"
#include "onnx/model.h"
#include "onnx/protobuf.h"

namespace echelon::onnx {
namespace {

std::uint64_t onnx_bits(std::int64_t n) { return static_cast<std::uint64_t>(n); }

std::string tensor_text(const Tensor& t) {
  ProtoWriter w;
  for (const std::int64_t d : t.dims) w.number(1, onnx_bits(d));
  w.number(2, static_cast<std::uint64_t>(t.element));
  w.bytes(8, t.name);
  w.bytes(9, t.bytes);
  return w.text();
}

std::string attribute_text(const std::string& name, const Attribute& a) {
  ProtoWriter w;
  w.bytes(1, name);
  switch (a.kind) {
    case Attribute::Kind::real: w.real(2, static_cast<float>(a.real)); break;
    case Attribute::Kind::integer: w.number(3, onnx_bits(a.integer)); break;
    case Attribute::Kind::text: w.bytes(4, a.text); break;
    case Attribute::Kind::tensor: w.bytes(5, tensor_text(a.tensor.at(0))); break;
    case Attribute::Kind::reals:
      for (const double r : a.reals) w.real(7, static_cast<float>(r));
      break;
    case Attribute::Kind::integers:
      for (const std::int64_t n : a.integers) w.number(8, onnx_bits(n));
      break;
    case Attribute::Kind::texts:
      for (const std::string& t : a.texts) w.bytes(9, t);
      break;
    case Attribute::Kind::graph: bad_input("attribute '{}': graphs inside of graphs are not written", name);
  }
  w.number(20, static_cast<std::uint64_t>(a.kind));
  return w.text();
}

std::string node_text(const Node& n) {
  ProtoWriter w;
  for (const std::string& in : n.in) w.bytes(1, in);
  for (const std::string& out : n.out) w.bytes(2, out);
  w.bytes(3, n.name);
  w.bytes(4, n.type);
  for (const auto& [name, a] : n.attributes) w.bytes(5, attribute_text(name, a));
  return w.text();
}

std::string value_text(const ValueType& v) {
  ProtoWriter shape;
  for (std::size_t i = 0; i < v.dims.size(); ++i) {
    ProtoWriter dim;
    if (v.dims[i] >= 0)
      dim.number(1, onnx_bits(v.dims[i]));
    else
      dim.bytes(2, i < v.names.size() ? v.names[i] : "");
    shape.bytes(1, dim.text());
  }
  ProtoWriter tensor, type, value;
  tensor.number(1, static_cast<std::uint64_t>(v.element));
  tensor.bytes(2, shape.text());
  type.bytes(1, tensor.text());
  value.bytes(1, v.name);
  value.bytes(2, type.text());
  return value.text();
}

}  // namespace

std::string write(const Model& model) {
  std::size_t weights = 0;
  for (const Tensor& t : model.initializers) weights += t.bytes.size();
  if (weights > most_file_bytes - (64 << 20))
    bad_input("an ONNX file cannot hold more than 2 GB; these weights are {} bytes. Export safetensors", weights);
  ProtoWriter graph;
  for (const Node& n : model.nodes) graph.bytes(1, node_text(n));
  graph.bytes(2, model.graph_name);
  for (const Tensor& t : model.initializers) graph.bytes(5, tensor_text(t));
  for (const ValueType& v : model.inputs) graph.bytes(11, value_text(v));
  for (const ValueType& v : model.outputs) graph.bytes(12, value_text(v));
  ProtoWriter opset, file;
  opset.bytes(1, "");
  opset.number(2, onnx_bits(model.opset));
  file.number(1, 8);  // the IR version that came with opset 17
  file.bytes(2, model.producer);
  file.bytes(7, graph.text());
  file.bytes(8, opset.text());
  for (const auto& [key, value] : model.metadata) {
    ProtoWriter entry;
    entry.bytes(1, key);
    entry.bytes(2, value);
    file.bytes(14, entry.text());
  }
  return file.text();
}

}  // namespace echelon::onnx
