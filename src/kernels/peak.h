#pragma once
// The limit that everything else is measured against: how many fused multiply-adds one core does when nothing but
// registers is in the way.

#include <cstdint>

namespace echelon::kernels {

// Does `rounds` rounds of independent multiply-adds; returns how many floating-point operations that were. The caller
// holds the watch. Thread-safe.
double fma_work(std::int64_t rounds);

}  // namespace echelon::kernels
