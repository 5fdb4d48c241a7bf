// Rows for shapes, parts and orders.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "onnx/import_numbers.h"
#include "onnx/import_rows.h"

namespace echelon::onnx {
namespace {

using Kind = Known::Kind;

Ints dims_of(const Known& x) {
  Ints dims;
  for (int i = 0; i < x.rank(); ++i) dims.push_back(x.extent(i));
  return dims;
}

Ints stated_axes(NodeImport& n) { return n.has(1) ? n.integers(1) : n.list("axes", {}); }

bool ends_the_network(const Import& import, const std::string& value) {
  const auto it = import.readers.find(value);
  if (it == import.readers.end()) return false;
  return std::ranges::all_of(it->second, [&](const Node* reader) {
    return !reader || (reader->type == "Identity" && reader->out.size() == 1 && reader->out[0] != value &&
                       import.readers.contains(reader->out[0]) &&
                       import.readers.at(reader->out[0]) == std::vector<const Node*>{nullptr});
  });
}

// The last step of a language model, [N, time, vocabulary] -> [N * time, vocabulary], is done by our models themselves.
bool puts_positions_under_each_other(NodeImport& n, const Known& x, const Ints& dims) {
  return x.rank() == 3 && dims.size() == 2 && dims[1] == x.shape[2] &&
         (dims[0] == -1 || dims[0] == x.shape[0] * x.shape[1]) && ends_the_network(n.import(), n.node().out[0]);
}

void reshape_in(NodeImport& n) {
  Ints dims = n.integers(1);
  // A recurrent layer's states [time, batch, directions, features]: their features side by side, as we have them.
  if (n.in(0).is(Kind::turned_states)) {
    if (dims != Ints{0, 0, -1}) n.refuse("the states of a recurrent layer are only put side by side");
    Known y = n.in(0);
    y.kind = Kind::value, y.order = {1, 0, 2};
    return n.out(y);
  }
  const Known x = n.value(0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 0 && n.integer("allowzero", 0) == 0 && static_cast<int>(i) < x.rank())
      dims[i] = x.shape[static_cast<int>(i)];
  if (puts_positions_under_each_other(n, x, dims)) return n.out(x);
  n.out(n.reshaped(x, dims));
}

void flatten_in(NodeImport& n) {
  const Known x = n.value(0);
  if (n.axis(n.integer("axis", 1), x.rank() + 1) != 1) n.refuse("only axis 1 is read");
  n.out(n.reshaped(x, {x.shape[0], -1}));
}

void squeeze_in(NodeImport& n) {
  const Ints axes = stated_axes(n);
  const Known& x = n.in(0);
  if (x.is(Kind::states)) {  // [time, directions, batch, features]
    if (x.directions != 1 || axes != Ints{1}) n.refuse("the states of a recurrent layer with two directions");
    Known y = x;
    y.kind = Kind::value, y.order = {1, 0, 2};
    return n.out(y);
  }
  if (x.is(Kind::last_states)) {  // [directions, batch, features]
    if (x.directions != 1 || axes != Ints{0}) n.refuse("the last states of a recurrent layer with two directions");
    Known y = x;
    y.kind = Kind::value;
    return n.out(y);
  }
  const Known v = n.value(0);
  const Ints dims = dims_of(v);
  std::vector<bool> drop(dims.size(), axes.empty());
  for (const std::int64_t a : axes) drop[static_cast<std::size_t>(n.axis(a, v.rank()))] = true;
  Ints kept;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!drop[i] || dims[i] != 1) kept.push_back(dims[i]);
  n.out(n.reshaped(v, kept));
}

void unsqueeze_in(NodeImport& n) {
  const Known v = n.value(0);
  const Ints dims = dims_of(v), axes = stated_axes(n);
  const std::size_t rank = dims.size() + axes.size();
  if (rank > Shape::max_rank) n.refuse("more than six dimensions");
  std::vector<bool> one(rank, false);
  for (const std::int64_t a : axes) one[static_cast<std::size_t>(n.axis(a, static_cast<int>(rank)))] = true;
  Ints out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(one[i] || next >= dims.size() ? 1 : dims[next++]);
  n.out(n.reshaped(v, out));
}

// Nothing is moved yet: the order is remembered, and often undone by a later node.
void transpose_in(NodeImport& n) {
  Known x = n.in(0);
  Ints perm = n.list("perm", {});
  if (x.is(Kind::states)) {
    if (perm != Ints{0, 2, 1, 3}) n.refuse("the states of a recurrent layer in an order that is not read");
    x.kind = Kind::turned_states;
    return n.out(x);
  }
  if (!x.is(Kind::value)) x = n.value(0);
  if (perm.empty())
    for (int i = x.rank(); i-- > 0;) perm.push_back(i);
  if (static_cast<int>(perm.size()) != x.rank()) n.refuse("an order of other dimensions");
  std::vector<int> order;
  for (const std::int64_t p : perm) {
    const int a = n.axis(p, x.rank());
    order.push_back(x.order.empty() ? a : x.order[static_cast<std::size_t>(a)]);
  }
  x.order = order;
  std::ranges::sort(order);
  for (int i = 0; i < x.rank(); ++i)
    if (order[static_cast<std::size_t>(i)] != i) n.refuse("an order that names a dimension twice");
  if (std::ranges::equal(x.order, order)) x.order.clear();
  n.out(x);
}

void concat_in(NodeImport& n) {
  std::vector<Known> in;
  for (std::size_t i = 0; i < n.node().in.size(); ++i) in.push_back(n.value(i));
  if (in.empty()) n.refuse("joins nothing");
  const int axis = n.axis(n.integer("axis", 1), in[0].rank());
  if (axis == 0) n.refuse("joins samples of the batch, which layers here cannot");
  n.out(in.size() == 1 ? in[0] : n.import().layer("concat", "", in, {{"axis", whole(axis)}}));
}

Known part(NodeImport& n, const Known& x, int axis, std::int64_t begin, std::int64_t end) {
  if (axis == 0 && begin == 0 && end == x.shape[0]) return x;
  if (axis == 0) n.refuse("takes samples out of the batch, which layers here cannot");
  if (begin < 0 || begin >= end || end > x.shape[axis])
    n.refuse(fmt::format("there is no part [{}, {}) of {}", begin, end, x.shape[axis]));
  if (begin == 0 && end == x.shape[axis]) return x;
  return n.import().layer("slice", "", {x}, {{"axis", whole(axis)}, {"begin", whole(begin)}, {"end", whole(end)}});
}

void slice_in(NodeImport& n) {
  Known x = n.value(0);
  for (const SliceRange& range : slice_ranges(n)) {
    const int a = n.axis(range.axis, x.rank());
    if (range.step != 1) n.refuse("only steps of one are read");
    const std::int64_t extent = x.shape[a];
    const auto inside = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + extent : v, 0, extent); };
    x = part(n, x, a, inside(range.begin), inside(range.end));
  }
  n.out(x);
}

void split_in(NodeImport& n) {
  const Known x = n.value(0);
  const int axis = n.axis(n.integer("axis", 0), x.rank());
  Ints extents = n.has(1) ? n.integers(1) : n.list("split", {});
  if (extents.empty()) {
    const auto parts = static_cast<std::int64_t>(n.node().out.size());
    if (parts < 1 || x.shape[axis] % parts != 0) n.refuse("parts of different sizes");
    extents.assign(n.node().out.size(), x.shape[axis] / parts);
  }
  if (extents.size() != n.node().out.size()) n.refuse("more parts than results, or fewer");
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 1 || extents[i] > x.shape[axis]) n.refuse(fmt::format("a part of {}", extents[i]));
    n.out(part(n, x, axis, begin, begin + extents[i]), i);
    begin += extents[i];
  }
}

// One element along an axis, ids looked up in a table, or one direction of a recurrent layer's last states.
void gather_in(NodeImport& n) {
  if (n.is_constant(0)) {
    const Tensor& table = n.constant(0);
    if (table.dims.size() != 2 || n.integer("axis", 0) != 0)
      n.refuse("ids are looked up in a table [rows, width] only");
    const Known y = n.import().layer("embedding", n.module({0}), {n.value(1)},
                                     {{"rows", whole(table.dims[0])}, {"width", whole(table.dims[1])}});
    n.import().weight(y.layer, "weight", Shape(table.dims), read_floats(table));
    return n.out(y);
  }
  const Known& x = n.in(0);
  if (!n.is_constant(1) || n.constant(1).elements() != 1)
    n.refuse("takes one element along an axis, which must be known");
  const std::int64_t index = n.integers(1).at(0);
  if (x.is(Kind::last_states)) {
    if (x.directions != 1 || n.integer("axis", 0) != 0 || index < -1 || index > 0)
      n.refuse("takes one of several last states of a recurrent layer");
    Known y = x;
    y.kind = Kind::value;
    return n.out(y);
  }
  const Known v = n.value(0);
  const int axis = n.axis(n.integer("axis", 0), v.rank());
  const std::int64_t at = index < 0 ? index + v.shape[axis] : index;
  if (at < 0 || at >= v.shape[axis]) n.refuse(fmt::format("there is no element {} of {}", index, v.shape[axis]));
  Ints dims = dims_of(v);
  const Known one = part(n, v, axis, at, at + 1);
  if (n.constant(1).dims.empty())
    dims.erase(dims.begin() + axis);
  else
    dims[static_cast<std::size_t>(axis)] = 1;
  n.out(n.reshaped(one, dims));
}

void same_in(NodeImport& n) { n.out(n.in(0)); }

void pad_in(NodeImport& n) {
  for (const std::int64_t p : n.has(1) ? n.integers(1) : n.list("pads", {}))
    if (p != 0) n.refuse("only a padding of nothing is read; convolutions and poolings pad by themselves");
  n.out(n.in(0));
}

constexpr auto shapes_in = std::to_array<ImportRow>({
    {"Reshape", reshape_in},
    {"Flatten", flatten_in},
    {"Squeeze", squeeze_in},
    {"Unsqueeze", unsqueeze_in},
    {"Transpose", transpose_in},
    {"Concat", concat_in},
    {"Slice", slice_in},
    {"Split", split_in},
    {"Gather", gather_in},
    {"Identity", same_in},
    {"Cast", same_in},
    {"Pad", pad_in},
});

}  // namespace

std::span<const ImportRow> shape_rows() { return shapes_in; }

}  // namespace echelon::onnx
