#pragma once
// The instruction sets that Echelon's Highway kernels are compiled for: SSE4 (every x86-64-v2 machine, the baseline)
// and AVX2 with FMA, chosen at run time. Include it before anything of Highway. AVX-512 is left out on purpose: these
// kernels are limited by memory. simd_targets_512.h is for those that are not.
//
// A kernel file looks like this (Highway includes it once per target):
//   #include "kernels/simd/simd_targets.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/thisfile.cpp"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   #include "kernels/simd/simd-inl.h"

#define HWY_DISABLE_PCLMUL_AES  // x86-64-v2 has no AES; without this Highway would fall back to SSSE3
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
