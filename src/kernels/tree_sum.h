#pragma once
// The sum of several vectors in one fixed binary tree (base/tree.h): ((a + b) + (c + d)), exactly rounded, element by
// element, so that a range may be split anywhere. One pass over memory: each input is read once, the result written
// once. Thread-safe on distinct ranges, allocates nothing.

#include <cstddef>
#include <span>

namespace echelon::kernels {

// out[i] = the tree sum of in[0][i], in[1][i], ...; at least one input. `out` may be the memory of any input.
void tree_sum(std::span<const float* const> in, float* out, std::size_t n);
void ref_tree_sum(std::span<const float* const> in, float* out, std::size_t n);

}  // namespace echelon::kernels
