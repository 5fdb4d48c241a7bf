// The readable twins of gemm.h: plain loops, sums in double.
#include "kernels/gemm/gemm.h"

namespace echelon::kernels {

void ref_gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
              std::int64_t ldc) {
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < g.k; ++p)
        sum += static_cast<double>(g.trans_a ? a[p * lda + i] : a[i * lda + p]) *
               static_cast<double>(g.trans_b ? b[j * ldb + p] : b[p * ldb + j]);
      float& out = c[i * ldc + j];
      out = static_cast<float>(g.alpha * sum + (g.beta == 0 ? 0.0 : static_cast<double>(g.beta) * out));
    }
}

void ref_linear_forward(const LinearShape& s, const float* x, const float* w, const float* bias, float* y) {
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t j = 0; j < s.out; ++j) {
      double sum = bias ? bias[j] : 0.0;
      for (std::int64_t p = 0; p < s.in; ++p) sum += static_cast<double>(x[i * s.in + p]) * w[j * s.in + p];
      y[i * s.out + j] = static_cast<float>(sum);
    }
}

}  // namespace echelon::kernels
