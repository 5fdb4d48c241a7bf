#pragma once
// Products of a matrix with a few vectors, in one pass over the matrix, for low-rank approximation. (A general matrix
// product would first pack the matrix, which takes longer than these few sums.) The vectors lie one after the other.
// The same bits on every instruction set. Thread-safe, allocates nothing.

#include <cstddef>

namespace echelon::codecs {

// `rows` rows of a matrix that has `all_rows`. Of `count` vectors, those on the left are as long as it has rows in all,
// those on the right as long as a row.
struct SomeRows {
  std::size_t rows = 0, columns = 0, all_rows = 0;
  std::size_t count = 0;
};

// left[k, i] = row i of m . right[k].
void rows_by_vectors(const SomeRows& size, const float* m, const float* right, float* left);
// right[k] = sum over i of left[k, i] * row i of m.
void vectors_by_rows(const SomeRows& size, const float* m, const float* left, float* right);
// m[i, j] += scale * sum over k of left[k, i] * right[k, j].
void add_product(const SomeRows& size, float scale, const float* left, const float* right, float* m);

}  // namespace echelon::codecs
