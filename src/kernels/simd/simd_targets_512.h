#pragma once
// simd_targets.h and AVX-512 besides, for the kernels that the multiply-adds limit: matrix products and what is made of
// them. Sixteen floats at a time give the same bits as eight there, because every number of the result has its own lane
// and its own order of sums, whatever lies beside it. Include it in the place of simd_targets.h.

#define HWY_DISABLE_PCLMUL_AES  // see simd_targets.h
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
