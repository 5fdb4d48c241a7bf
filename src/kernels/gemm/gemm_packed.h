#pragma once
// Echelon's own matrix product. See gemm.h for the meaning and the common rules; gemm() decides when it is used.

#include "kernels/gemm/gemm.h"

namespace echelon::kernels {

std::size_t packed_gemm_scratch(const Gemm& g);
// bias[n], when not null, is added to every row of the result.
void packed_gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                 std::int64_t ldc, const float* bias, void* scratch);

}  // namespace echelon::kernels
