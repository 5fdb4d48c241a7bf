#include "base/tree.h"
#include "kernels/tree_sum.h"

namespace echelon::kernels {

namespace {

float ref_sum_leaves(std::span<const float* const> in, std::size_t i) {
  if (in.size() == 1) return in[0][i];
  const auto mid = static_cast<std::size_t>(tree_split(0, static_cast<int>(in.size())));
  return ref_sum_leaves(in.first(mid), i) + ref_sum_leaves(in.subspan(mid), i);
}

}  // namespace

void ref_tree_sum(std::span<const float* const> in, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = ref_sum_leaves(in, i);
}

}  // namespace echelon::kernels
