#pragma once
// Known tensors as numbers in double precision, for nodes that are computed while a network is imported. Private to the
// files that import.

#include <vector>

#include "onnx/import_node.h"

namespace echelon::onnx {

constexpr std::int64_t most_folded = 1 << 22;  // numbers in a result that is larger than what it is made of

struct Numbers {
  Element element = Element::f32;
  Ints dims;
  std::vector<double> at;
};

inline bool is_real(Element e) { return e == Element::f32 || e == Element::f64 || e == Element::f16; }

Numbers numbers_of(const Tensor& t);
Numbers argument(NodeImport& n, std::size_t i);  // the node's input, which must be known
Known as_known(const Numbers& n);

// How many numbers a tensor of these extents has; the node is refused if they are more than it is `made_of` and too
// many.
std::int64_t count_of(NodeImport& n, const Ints& dims, std::size_t made_of = 0);
double number_at(NodeImport& n, const Numbers& x, std::int64_t at);  // the node is refused if there is none

Ints strides_of(const Ints& dims);
Ints joint_dims(NodeImport& n, const Ints& a, const Ints& b);  // of two shapes that are broadcast to each other
std::vector<double> broadcast(NodeImport& n, const Numbers& x, const Ints& dims);  // its numbers, repeated to `dims`

// What a Slice node takes of one axis, as it says it: negative numbers count from the end.
struct SliceRange {
  std::int64_t axis, begin, end, step;
};
std::vector<SliceRange> slice_ranges(NodeImport& n);

// Calls f(offset in a tensor with these strides) for every index of `dims`, last dimension fastest.
template <typename F>
void walk(const Ints& dims, const Ints& strides, std::int64_t start, F&& f) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  Ints at(dims.size(), 0);
  std::int64_t offset = start;
  for (std::int64_t i = 0; i < count; ++i) {
    f(offset);
    for (std::size_t d = dims.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < dims[d]) break;
      offset -= strides[d] * dims[d], at[d] = 0;
    }
  }
}

}  // namespace echelon::onnx
