#pragma once
// Networks written as data: a list of tables, one a layer, without recompiling.
//
//   [[model.layers]]
//   type = "conv2d"          # a name of the table in layer_table.cpp
//   out = 6
//   kernel = 5
//   padding = 2
//   name = "conv1"           # optional; needed only to refer to it
//   input = "stem"           # optional: the layer before; "input" is the network's own input
//   inputs = ["a", "b"]      # for layers that join several (add, concat)
//
// Reading (once, every problem reported) is separate from building (as often as graphs are needed, on any input shape).
// To add a kind of layer, add a row to the table. Thread-safe: the table is constant, what is read is a plain value.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "nn/layers.h"

namespace echelon::nn {

using BuildLayer = std::function<Value(Net&, std::span<const Value>)>;

struct LayerKind {
  std::string_view name;
  std::string_view keys;  // for people: what may be set, with defaults
  int least_inputs, most_inputs;
  BuildLayer (*read)(OptionReader&);
};
std::span<const LayerKind> layer_table();

struct LayerPlan {
  std::string name;         // may be empty
  std::vector<int> inputs;  // indices of earlier layers; -1 is the network's input
  BuildLayer build;
  Place place;  // where it was written
};

// A layer that does not fit its input, with the place where it was written.
class LayerError : public BadInput {
 public:
  LayerError(const std::string& text, Place place) : BadInput(text), place_(std::move(place)) {}
  const Place& place() const { return place_; }

 private:
  Place place_;
};

// Reads every table of the array `key`; what is wrong goes to the reader's problems.
std::vector<LayerPlan> read_layers(OptionReader& options, const std::string& key);
// Adds the layers to the net and returns the last one's output. Throws LayerError where shapes do not fit.
Value build_layers(Net& net, Value input, std::span<const LayerPlan> layers);

}  // namespace echelon::nn
