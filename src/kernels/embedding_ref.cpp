#include "kernels/embedding.h"

namespace echelon::kernels {

std::int64_t ref_check_ids(std::span<const std::int32_t> ids, std::size_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= vocabulary) return static_cast<std::int64_t>(i);
  return -1;
}

void ref_embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t d = 0; d < dim; ++d) out[i * dim + d] = table[static_cast<std::size_t>(ids[i]) * dim + d];
}

void ref_embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t d = 0; d < dim; ++d) dtable[static_cast<std::size_t>(ids[i]) * dim + d] += dy[i * dim + d];
}

}  // namespace echelon::kernels
