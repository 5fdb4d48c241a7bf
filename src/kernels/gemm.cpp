#include "kernels/gemm.h"

#include <cblas.h>

#include <algorithm>

namespace echelon::kernels {

void init_math_libraries() { openblas_set_num_threads(1); }

std::size_t gemm_scratch(const Gemm&) { return 0; }

void gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
          void*) {
  if (g.m == 0 || g.n == 0) return;
  cblas_sgemm(CblasRowMajor, g.trans_a ? CblasTrans : CblasNoTrans, g.trans_b ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(g.m), static_cast<blasint>(g.n), static_cast<blasint>(g.k), g.alpha, a,
              static_cast<blasint>(lda), b, static_cast<blasint>(ldb), g.beta, c, static_cast<blasint>(ldc));
}

std::size_t linear_scratch(const LinearShape& s) {
  return std::max({gemm_scratch({.trans_b = true, .m = s.rows, .n = s.out, .k = s.in}),
                   gemm_scratch({.m = s.rows, .n = s.in, .k = s.out}),
                   gemm_scratch({.trans_a = true, .m = s.out, .n = s.in, .k = s.rows})});
}

void linear_forward(const LinearShape& s, const float* x, const float* w, const float* bias, float* y, void* scratch) {
  if (bias)
    for (std::int64_t i = 0; i < s.rows; ++i) std::copy_n(bias, s.out, y + i * s.out);
  gemm({.trans_b = true, .m = s.rows, .n = s.out, .k = s.in, .beta = bias ? 1.0f : 0.0f}, x, s.in, w, s.in, y, s.out,
       scratch);
}

void linear_backward(const LinearShape& s, const float* x, const float* w, const float* dy, float* dx, float* dw,
                     float* db, void* scratch) {
  if (dx) gemm({.m = s.rows, .n = s.in, .k = s.out}, dy, s.out, w, s.in, dx, s.in, scratch);
  if (dw) gemm({.trans_a = true, .m = s.out, .n = s.in, .k = s.rows}, dy, s.out, x, s.in, dw, s.in, scratch);
  if (db) column_sums(s.rows, s.out, dy, s.out, db);
}

void column_sums(std::int64_t m, std::int64_t n, const float* a, std::int64_t lda, float* sums) {
  std::fill_n(sums, n, 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) sums[j] += a[i * lda + j];
}

}  // namespace echelon::kernels
