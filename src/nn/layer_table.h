#pragma once
// Networks written as data: a list of tables, one a layer, without recompiling.
//
//   [[model.layers]]
//   type = "conv2d"          # a name of the table in layer_kinds.cpp
//   out = 6
//   kernel = 5
//   padding = 2
//   name = "conv1"           # optional; needed only to refer to it
//   input = "stem"           # optional: the layer before; "input" is the network's own input
//   inputs = ["a", "b"]      # for layers that join several (add, multiply, concat)
//
//   [[model.layers]]
//   type = "block"           # a list of layers that is written once and built several times
//   repeat = 4
//   residual = true          # each time, what came in is added to what comes out
//   layers = [{ type = "linear", out = 64 }, { type = "relu" }]
//
// A network that reads several inputs names them where they are read. In a block, "input" is the block's own; names of
// layers outside are known inside, and not the other way round. Blocks may hold blocks. The parameters of a block
// called "body" begin with "body.", and with "body.0.", "body.1.", ... if it is repeated.
//
// Reading (once, every problem reported) is separate from building (as often as graphs are needed, on any input shape).
// To add a kind of layer, add a row to the table. Thread-safe: the table is constant, what is read is a plain value.

#include <functional>
#include <map>
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
  std::string name;                 // may be empty
  std::vector<std::string> inputs;  // names of what it reads; none: the layer before
  BuildLayer build;                 // not for a block, and not for what could not be read
  std::vector<LayerPlan> block;     // not empty: its layers
  int repeat = 1;
  bool residual = false;
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

// Reads every table of the array `key`; what is wrong goes to the reader's problems. `inputs` are the names of the
// network's inputs; where there are several, each must be read by some layer.
std::vector<LayerPlan> read_layers(OptionReader& options, const std::string& key,
                                   const std::vector<std::string>& inputs = {"input"});

// Adds the layers to the net. Throws LayerError where shapes do not fit.
struct BuiltLayers {
  Value last;
  std::map<std::string, Value> named;  // the inputs and the layers with a name, but not those inside of blocks
};
BuiltLayers build_layers(Net& net, const std::map<std::string, Value>& inputs, std::span<const LayerPlan> layers);
// With one input: the last layer's output.
Value build_layers(Net& net, Value input, std::span<const LayerPlan> layers);

}  // namespace echelon::nn
