#pragma once
// How one node of a graph becomes ONNX nodes: what a row of the table (export_ops.h) is given. It hands out the ONNX
// names of the node's operands, their types, and adds nodes and constants to the file.

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "onnx/model.h"

namespace echelon::onnx {

using OnnxAttributes = std::map<std::string, Attribute>;
Attribute integer(std::int64_t value);
Attribute real(double value);
Attribute text(std::string value);
Attribute list(std::vector<std::int64_t> values);

// The graph at two batch sizes, and the file as far as it is written.
struct ExportState {
  const Graph& graph;
  const Graph& other;  // the same at another batch size; the graph itself if the batch is fixed
  const ParameterTable& table;
  std::span<const float> parameters;
  Model& file;
  std::map<int, std::string> names;  // by value
  std::int64_t batch = 0;            // of `graph`
  int counter = 0;
  std::map<std::string, std::string> constants = {};  // small ones, by what is in them

  std::string fresh(const std::string& stem);
};

class NodeExport {
 public:
  NodeExport(ExportState& state, const echelon::Node& node, int index);

  // --- what is to be said ---
  std::size_t inputs() const { return node_.in.size(); }
  const std::string& in(std::size_t i) const;  // the ONNX name of an input
  const Shape& shape(std::size_t i) const;     // of an input
  const Shape& out_shape(std::size_t i = 0) const;
  std::size_t outputs() const { return node_.out.size(); }
  bool has(const std::string& name) const { return attributes_.contains(name); }
  double attribute(const std::string& name) const;
  std::int64_t whole(const std::string& name) const { return static_cast<std::int64_t>(attribute(name)); }
  const Op& op() const { return *node_.op; }
  bool depends_on_batch(Value v, int axis) const;
  std::vector<float> parameter(std::size_t i) const;  // the numbers of an input that must be a parameter

  // --- how it is said ---
  // Adds a node and returns the name of its (first) output.
  std::string add(const std::string& type, std::vector<std::string> in, OnnxAttributes attributes = {});
  std::vector<std::string> add_many(const std::string& type, std::vector<std::string> in, std::size_t outputs,
                                    OnnxAttributes attributes = {});
  std::string constant(float value);
  std::string constant(const std::vector<std::int64_t>& values);
  std::string constant(std::vector<std::int64_t> dims, const std::vector<float>& values);
  void result(const std::string& name, std::size_t output = 0);  // output `output` of the node is this ONNX value
  void input(const std::string& name);                           // output 0 is an input of the file

  // Reshape to output `o`'s shape; the extent that depends on the batch is found by the reader.
  std::string reshaped(const std::string& x, std::size_t o = 0);
  std::string reshaped(const std::string& x, std::vector<std::int64_t> dims);  // 0: as it is, -1: the rest
  // A tensor of output `o`'s shape that holds one number everywhere.
  std::string filled(float value, std::size_t o = 0);
  // x with an extent of 1 for each dimension from `from` to `rank`: it then acts on the leading ones, or on channels.
  std::string with_ones_behind(const std::string& x, int from, int rank);
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::vector<std::int64_t> open_dims(std::size_t o) const;
  ExportState& state_;
  const echelon::Node& node_;
  int index_;
  Attributes attributes_;
};

}  // namespace echelon::onnx
