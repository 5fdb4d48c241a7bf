#pragma once
// The world of ranks that share a Segment: threads of one process, or processes of one machine.

#include <exception>
#include <memory>
#include <string>

#include "world/launch.h"
#include "world/transport/memory/segment.h"

namespace echelon {

// Rank `rank` of the segment's world, called `world` in its RankPlace. The segment outlives it.
std::unique_ptr<World> make_memory_world(const std::string& world, Segment& segment, int rank, std::uint64_t seed);

// Runs the program as that rank, to its end. What it throws is recorded as the segment's failure, unless there is one.
void run_rank(const std::string& world, Segment& segment, int rank, std::uint64_t seed, const Program& program);

}  // namespace echelon
