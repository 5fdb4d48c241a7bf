#pragma once
// A static training graph: nodes in an order in which they can run, values between them, parameters that outlive a
// step. A graph is a plain value: copy it, cut it, rewrite it. Passes (graph/passes/) take one and give one back.
// Not thread-safe while it is being built; read it from as many threads as you like afterwards.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/parameter.h"
#include "graph/type.h"

namespace echelon {

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<Value> in, out;
  std::string layer;      // the layer it belongs to, for messages, profiles and cuts: "block2.conv1"
  bool backward = false;  // made by differentiate()
  // The slice it belongs to (graph/passes/slice.h). -1: to none; whoever needs its outputs computes it.
  int slice = -1;
};

struct ValueInfo {
  enum class Source { input, parameter, node };
  Type type;
  Source source = Source::node;
  int producer = -1;  // the node, or the index among the inputs or parameters
};

class Graph {
 public:
  struct Input {
    std::string name;
    Value value;
  };
  // A value that flows from one step into the next on the same shard (the hidden state of truncated BPTT).
  struct Carry {
    std::string name;
    Value from, to;  // `from` is an input, zero before the first step; `to` is what the next step will find there
  };

  explicit Graph(bool training = true) : training_(training) {}
  bool training() const { return training_; }

  // --- building ---
  Value input(const std::string& name, const Type& type);
  Value parameter(const Parameter& parameter);  // the same value again for a name that is there already
  Value carry(const std::string& name, const Type& type);
  void carry_on(Value from, Value to);
  std::vector<Value> add(std::shared_ptr<const Op> op, std::vector<Value> in);
  Value add_one(std::shared_ptr<const Op> op, std::vector<Value> in) { return add(std::move(op), std::move(in))[0]; }
  void set_output(const std::string& name, Value value) { outputs_[name] = value; }
  // What the step contributes to a parameter: a weight's gradient, a statistic's new value.
  void set_contribution(Value parameter, Value contribution);
  void set_lr_scale(std::size_t parameter, double scale) { parameters_[parameter].lr_scale = scale; }

  // Names the layer of the nodes that are added while the returned object lives: nested layers join with a dot.
  class Scope {
   public:
    Scope(Graph& graph, const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t length_;
  };
  const std::string& layer() const { return layer_; }
  void set_layer(std::string layer) { layer_ = std::move(layer); }
  void set_backward(bool on) { backward_ = on; }
  void set_slice(int slice) { slice_ = slice; }  // of the nodes that are added from now on
  // "conv" the first time, then "conv2", "conv3" ...: names for layers that were given none.
  std::string unique_name(const std::string& base);

  // --- reading ---
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Carry>& carries() const { return carries_; }
  const std::map<std::string, Value>& outputs() const { return outputs_; }
  const std::vector<Value>& contributions() const { return contributions_; }  // one per parameter; may be "no value"
  Value parameter_value(std::size_t index) const { return parameter_values_[index]; }
  int values() const { return static_cast<int>(values_.size()); }
  const ValueInfo& info(Value v) const { return values_[static_cast<std::size_t>(v.id)]; }
  const Type& type(Value v) const { return info(v).type; }
  int slice_of(Value v) const;  // its node's; -1 for inputs and parameters
  std::vector<Type> types(std::span<const Value> vs) const;

  // For each value, how many node inputs read it (outputs, contributions and carries count as one each).
  std::vector<int> use_counts() const;

  // Only for passes: the layout is not part of a value's meaning, so it may be settled late.
  void set_layout(Value v, Layout layout) { values_[static_cast<std::size_t>(v.id)].type.layout = layout; }

 private:
  friend class Rewriter;
  Value new_value(const Type& type, ValueInfo::Source source, int producer);

  bool training_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<Input> inputs_;
  std::vector<Parameter> parameters_;
  std::vector<Value> parameter_values_, contributions_;
  std::vector<Carry> carries_;
  std::map<std::string, Value> outputs_;
  std::map<std::string, int> names_;
  std::string layer_;
  bool backward_ = false;
  int slice_ = -1;
};

// Copies a graph node by node into a new one; a pass decides for each node what to emit instead.
//   Rewriter r(old);
//   for (const Node& node : old.nodes()) r.copy(node);        // or: r.map(node.out[0], something else)
//   return r.finish();
class Rewriter {
 public:
  explicit Rewriter(const Graph& old);  // inputs, parameters and carries are copied at once
  Graph& graph() { return new_; }
  Value operator[](Value old) const { return map_[static_cast<std::size_t>(old.id)]; }
  std::vector<Value> mapped(std::span<const Value> old) const;
  void map(Value old, Value now) { map_[static_cast<std::size_t>(old.id)] = now; }
  void copy(const Node& node);
  // Adds `op` in the place of `node`: same layer and slice, outputs mapped.
  std::vector<Value> emit(const Node& node, std::shared_ptr<const Op> op, std::vector<Value> in);
  Graph finish();  // outputs, contributions and carries follow the map

 private:
  const Graph& old_;
  Graph new_;
  std::vector<Value> map_;
};

// The graph as text, a line a node: for people and for tests.
std::string to_string(const Graph& graph);

}  // namespace echelon
