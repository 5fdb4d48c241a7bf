#pragma once
// How an op says that it can be computed in slices: equal parts of a layer, each with its own part of the weights.
// Asked by passes/slice.h for every node, in the order of the graph. Plain data.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/type.h"

namespace echelon {

class Graph;
class Op;
struct Value;

// How a value is spread over slices.
struct Cut {
  static constexpr int none = -1;   // every slice sees all of it
  static constexpr int inner = -2;  // each slice has one of its own, which nobody reads but the op's gradient
  int axis = none;
  int blocks = 1;   // the axis is so many blocks beside each other (q, k, v), and every slice has a part of each
  int columns = 1;  // > 1, of matrices: axis 0 is cut into slices / columns parts, and axis 1 into so many (ops/grid.h)
  bool is_whole() const { return axis == none; }
  bool operator==(const Cut&) const = default;
};

// Where the part of a slice begins along an extent; parts differ by at most one.
constexpr std::int64_t part_begin(std::int64_t extent, int slices, int slice) { return extent * slice / slices; }
// The shape of a slice's part of a value that is cut.
Shape part_shape(Shape whole, const Cut& cut, int slices, int slice);

// Some rows (or columns) of an image.
struct RowRange {
  std::int64_t begin = 0, end = 0;
  bool operator==(const RowRange&) const = default;
};

// A window that moves along an axis.
struct StripWindow {
  std::int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
  // What it sees of the input, beyond its edges too.
  RowRange sees(RowRange out) const {
    return {out.begin * stride - pad, (out.end - 1) * stride - pad + (kernel - 1) * dilation + 1};
  }
};

// An op on strips of images: how rows of its outputs depend on rows of its inputs, and what computes them once all rows
// are there that the window sees (none: the op itself). What lies outside of the image has the value `outside`.
struct StripOp {
  StripWindow window = {};
  std::shared_ptr<const Op> op = {};
  float outside = 0;
  bool widens = true;  // whether a slice can compute rows of its neighbours too: it has the weights for them
};

struct SliceQuestion {
  std::span<const Type> in;      // whole
  std::span<const Cut> arrives;  // how each input is there already; parameters that nobody has read yet are whole
  int slices = 1;
  bool strips = false;  // images are cut into strips of rows, not by channels
  int columns = 1;      // > 1: matrices are cut in both dimensions, over a grid with so many columns of slices
  int blocks = 1;       // in which the reader of output 0 wants its last axis (Op::blocks)
  bool last = false;    // no layer with weights depends on the outputs: their parts may differ by one
};

struct SliceRule {
  std::vector<Cut> in;  // how the inputs must arrive: the pass cuts and joins what does not
  std::vector<Cut>
      out;  // how the outputs leave, if there is no `join`; whole ones: `build` has made one for all slices
  // What is dealt over the slices and must divide evenly: "heads". 0: anything goes.
  std::int64_t units = 0;
  std::string_view unit = {};
  int first_only = -1;                // an input that slice 0 alone takes (a bias that must be added once)
  std::optional<StripOp> strip = {};  // where inputs and outputs are strips of images
  // The op of a slice; none: the same.
  std::function<std::shared_ptr<const Op>(int slice)> op = {};
  // For ops that become several nodes a slice: adds them (and says whose they are: Graph::set_slice), from the inputs
  // of each slice to its outputs. None: one node a slice, with the op above.
  std::function<std::vector<std::vector<Value>>(Graph&, const std::vector<std::vector<Value>>& in)> build = {};
  // Makes the whole outputs from those of the slices (outputs[slice][i]) and the whole inputs; none: they stay cut.
  std::function<std::vector<Value>(Graph&, const std::vector<std::vector<Value>>& outputs,
                                   const std::vector<Value>& in)>
      join = {};
};

// The rule of an op that treats its inputs alike, all of one shape, and works along no axis: it follows the first input
// that is cut. No rule if none is.
std::optional<SliceRule> follow_cut(const SliceQuestion& q, std::size_t outputs = 1);
// The same for the axes but one: an op that needs that axis whole.
std::optional<SliceRule> follow_cut_except(const SliceQuestion& q, int axis, std::size_t outputs = 1);
// A rule of an op whose every number depends on its own place of the images alone: strips can be of any rows.
std::optional<SliceRule> row_by_row(std::optional<SliceRule> rule);

}  // namespace echelon
