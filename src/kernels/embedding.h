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

void ref_embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim);
void ref_embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim);

}  // namespace echelon::kernels
