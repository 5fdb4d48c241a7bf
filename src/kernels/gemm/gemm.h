#pragma once
// Matrix products of row-major float matrices, and the linear layer made of them.
//
// Every function runs on the calling thread only, allocates nothing and may be called from many threads at once (each
// with its own scratch). The result depends on the numbers and the shape, never on addresses or on other threads.
// `scratch` is 64-byte aligned memory of at least the bytes that the matching `*_scratch` function names; its contents
// mean nothing before or after. Nothing throws. Pointers may not overlap unless said.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

// Keeps the math libraries (OpenBLAS) from starting threads of their own: a core is our unit of compute. Call once at
// program start, before threads exist; calling it again does no harm.
void init_math_libraries();

// C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, where op transposes when asked. With beta 0, C is not read.
struct Gemm {
  bool trans_a = false, trans_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
};

std::size_t gemm_scratch(const Gemm& g);
// lda, ldb and ldc are the distances between the rows of A, B and C as they are stored (before op).
void gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
          void* scratch);
void ref_gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
              std::int64_t ldc);

// y[rows,out] = x[rows,in] * w[out,in]^T + bias[out]: torch.nn.Linear.
struct LinearShape {
  std::int64_t rows = 0, in = 0, out = 0;
};

std::size_t linear_scratch(const LinearShape& s);
void linear_forward(const LinearShape& s, const float* x, const float* w, const float* bias /* or null */, float* y,
                    void* scratch);
void ref_linear_forward(const LinearShape& s, const float* x, const float* w, const float* bias, float* y);

}  // namespace echelon::kernels
