#pragma once
// The arena of a Segment as a world's shared memory (world/shared_memory.h).

#include <memory>
#include <vector>

#include "world/shared_memory.h"
#include "world/transport/memory/segment.h"

namespace echelon {

// The segment outlives it and the barriers.
std::unique_ptr<SharedMemory> make_shared_memory(Segment& segment);

}  // namespace echelon
