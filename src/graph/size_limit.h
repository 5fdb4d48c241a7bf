#pragma once
// How large a value of a graph may be: 16 TiB of f32. That is far beyond any machine's memory, and small enough that
// what is computed from a few sizes (scratch memory, padding, sums over a graph) stays within 63 bits. Graph checks
// every input, parameter and result; whoever computes with sizes before there is a value checks them here first.

#include <cstdint>

#include "graph/type.h"

namespace echelon {

constexpr std::int64_t most_elements = std::int64_t{1} << 42;

// TooLarge (base/checked.h) if a tensor of this type has more elements, or more than can be counted.
void check_size(const Type& type);

}  // namespace echelon
