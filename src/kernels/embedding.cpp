#include "kernels/embedding.h"

#include "kernels/vector.h"

namespace echelon::kernels {

std::int64_t check_ids(std::span<const std::int32_t> ids, std::size_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= vocabulary) return static_cast<std::int64_t>(i);
  return -1;
}

// Whole rows are long and contiguous: the library's copy and the shard tree's addition are the fast loops here.
void embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i) copy(out + i * dim, table + static_cast<std::size_t>(ids[i]) * dim, dim);
}

void embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    add_into(dtable + static_cast<std::size_t>(ids[i]) * dim, dy + i * dim, dim);
}

void embedding_part(const float* part, std::span<const std::int32_t> ids, TableRows rows, float* out, std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (rows.has(ids[i]))
      copy(out + i * dim, part + (static_cast<std::size_t>(ids[i]) - rows.first) * dim, dim);
    else
      fill(out + i * dim, 0, dim);
  }
}

void embedding_part_grad(std::span<const std::int32_t> ids, TableRows rows, const float* dy, float* dpart,
                         std::size_t dim) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (rows.has(ids[i])) add_into(dpart + (static_cast<std::size_t>(ids[i]) - rows.first) * dim, dy + i * dim, dim);
}

}  // namespace echelon::kernels
