#pragma once
// The arithmetic of a reduction: dst = a (sum, min or max) b, element by element, each on its own, so that a range may
// be split anywhere. Memory need not be aligned. `dst` may be the same memory as a or b. min and max may drop a NaN.
// Integers wrap around. Thread-safe on distinct ranges.

#include <cstddef>

#include "collective/typed_span.h"

namespace echelon {

// For `mean` it adds; `divide` by the number of members makes the mean of the sum.
void combine(ElementType type, Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t n);
void divide(ElementType type, std::byte* data, std::size_t n, int by);

// The readable twin, for tests.
void ref_combine(ElementType type, Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b,
                 std::size_t n);

}  // namespace echelon
