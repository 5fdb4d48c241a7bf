#include "kernels/embedding.h"

namespace echelon::kernels {

void ref_embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t d = 0; d < dim; ++d) out[i * dim + d] = table[static_cast<std::size_t>(ids[i]) * dim + d];
}

void ref_embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t d = 0; d < dim; ++d) dtable[static_cast<std::size_t>(ids[i]) * dim + d] += dy[i * dim + d];
}

}  // namespace echelon::kernels
