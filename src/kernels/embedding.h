#pragma once
// Rows of a table by index, and the gradient of that. Indices must be in [0, vocabulary): ask check_ids first, the
// kernels do not. Thread-safe on distinct outputs, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::kernels {

// The position of the first id outside [0, vocabulary), or -1.
std::int64_t check_ids(std::span<const std::int32_t> ids, std::size_t vocabulary);

// out[i, :] = table[ids[i], :]
void embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim);

// dtable[ids[i], :] += dy[i, :], in the order of i. The caller has zeroed dtable, or wants the sum (tied weights).
void embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim);

// Rows [first, first + count) of a table of which only they are there.
struct TableRows {
  std::size_t first = 0, count = 0;
  bool has(std::int32_t id) const {
    return static_cast<std::size_t>(id) >= first && static_cast<std::size_t>(id) < first + count;
  }
};

// The same with a part of the table: an id of another row gives zeros, and its gradient goes nowhere.
void embedding_part(const float* part, std::span<const std::int32_t> ids, TableRows rows, float* out, std::size_t dim);
void embedding_part_grad(std::span<const std::int32_t> ids, TableRows rows, const float* dy, float* dpart,
                         std::size_t dim);

void ref_embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim);
void ref_embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim);

}  // namespace echelon::kernels
