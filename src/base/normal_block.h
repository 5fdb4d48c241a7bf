#pragma once
// Standard normal numbers of a stream, four at a time: the same bits as Stream::normal, which works out the block, and
// the radius that two of its numbers share, for each number anew. Thread-safe.

#include <array>
#include <cstdint>

#include "base/random.h"

namespace echelon {

// stream.normal(4 * index) and the three that follow.
std::array<float, 4> normal_block(const Stream& stream, std::uint32_t index);

}  // namespace echelon
