#include "kernels/gemm/gemm.h"

#include <cblas.h>

#include "kernels/gemm/gemm_packed.h"
#include "kernels/reduce.h"

namespace echelon::kernels {
namespace {

void clear(const Gemm& g, float* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) c[i * ldc + j] = g.beta == 0 ? 0.0f : g.beta * c[i * ldc + j];
}

}  // namespace

void init_math_libraries() { openblas_set_num_threads(1); }

std::size_t gemm_scratch(const Gemm& g) { return packed_gemm_scratch(g); }

void gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
          void* scratch) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    clear(g, c, ldc);
  } else {
    packed_gemm(g, a, lda, b, ldb, c, ldc, nullptr, scratch);
  }
}

std::size_t linear_scratch(const LinearShape& s) {
  return gemm_scratch({.trans_b = true, .m = s.rows, .n = s.out, .k = s.in});
}

void linear_forward(const LinearShape& s, const float* x, const float* w, const float* bias, float* y, void* scratch) {
  const Gemm g{.trans_b = true, .m = s.rows, .n = s.out, .k = s.in};
  if (s.rows > 0 && s.in > 0) {
    packed_gemm(g, x, s.in, w, s.in, y, s.out, bias, scratch);
  } else {
    gemm(g, x, s.in, w, s.in, y, s.out, scratch);
    if (bias) add_row_bias(y, bias, static_cast<std::size_t>(s.rows), static_cast<std::size_t>(s.out));
  }
}

}  // namespace echelon::kernels
