#pragma once
// What is known of an ONNX file's values while it is read, and the layers that have been made of it so far.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nn/layer_table.h"
#include "onnx/import.h"

namespace echelon::onnx {

// A value of the file: a tensor that is known, what a layer gives (times `factor`, plus `offset`), or a piece of a
// pattern that only makes sense with the pieces to come.
struct Known {
  enum class Kind {
    constant,
    value,
    mean,
    centred,
    squares,
    variance,
    deviation,
    normalised,
    scaled,  // of layer norm, in this order
    erf,
    erf_plus_one,  // of GELU
    states,
    turned_states,
    last_states  // of a recurrent layer
  };
  Kind kind = Kind::value;
  std::shared_ptr<const Tensor> tensor = {};  // constant; of `scaled`: the weights
  std::string layer = {};                     // whose output it is, or that the pattern is about
  Shape shape = {};                           // of that output, as we have it: the batch first
  std::vector<int> order = {};  // dimension i of the file's value is our dimension order[i]; empty: as it is
  double factor = 1, offset = 0;
  double eps = 0;
  int directions = 1;

  bool is(Kind k) const { return kind == k; }
  bool is_plain() const { return kind == Kind::value && factor == 1 && offset == 0 && order.empty(); }
  int rank() const;
  std::int64_t extent(int axis) const;  // of the file's value
};

using Setting = std::pair<std::string, Option>;
Option whole(std::int64_t n);
Option number(double x);
Option word(std::string text);
Option words(const std::vector<std::string>& texts);
Option wholes(const std::vector<std::int64_t>& numbers);
Option yes_or_no(bool b);

class Import {
 public:
  Import(const Model& file, std::int64_t batch);

  std::int64_t batch() const { return batch_; }
  // Adds a layer, which also builds it: shapes that do not fit are refused here. `base` is the name it should have.
  Known layer(const std::string& type, const std::string& base, std::vector<Known> in,
              std::vector<Setting> settings = {});
  void weight(const std::string& layer, const std::string& name, Shape shape, std::vector<float> numbers);
  Known input(const ValueType& value);
  ImportedNetwork take(const Known& output);

  std::map<std::string, Known> known;
  std::map<std::string, std::vector<const Node*>> readers;  // who reads a value
  std::set<const Node*> done;                               // nodes that another one has read along with itself

 private:
  const Model& file_;
  std::int64_t batch_;
  std::shared_ptr<Graph> graph_;
  nn::Net net_;
  std::map<std::string, Value> values_;
  std::set<std::string> names_;
  ImportedNetwork made_;
};

// A node as its row sees it.
class NodeImport {
 public:
  NodeImport(Import& import, const Node& node, std::size_t index) : import_(import), node_(node), index_(index) {}

  Import& import() { return import_; }
  const Node& node() const { return node_; }
  bool has(std::size_t i) const { return i < node_.in.size() && !node_.in[i].empty(); }
  const Known& in(std::size_t i) const;
  bool is_constant(std::size_t i) const { return has(i) && in(i).is(Known::Kind::constant); }
  const Tensor& constant(std::size_t i) const;
  std::vector<std::int64_t> integers(std::size_t i) const { return read_integers(constant(i)); }
  std::optional<double> scalar(std::size_t i) const;  // a constant of one number
  // What a layer gives, as the file has it: pending factors and orders become layers.
  Known value(std::size_t i) { return settled(in(i)); }
  Known settled(const Known& k);
  void out(const Known& value, std::size_t i = 0);

  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  double real(const std::string& name, double fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<std::int64_t> list(const std::string& name, std::vector<std::int64_t> fallback) const;
  int axis(std::int64_t stated, int rank) const;  // counted from the start; refused if there is none

  // The name of a layer with weights: what stands before ".weight" in theirs, or the path in the node's name.
  std::string module(std::initializer_list<std::size_t> weights) const;
  Known reshaped(const Known& x, std::vector<std::int64_t> dims);  // with the batch; one may be -1
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  Import& import_;
  const Node& node_;
  std::size_t index_;
};

// If all inputs are known: computes the node. False: it is none that can be.
bool fold(NodeImport& n);

}  // namespace echelon::onnx
