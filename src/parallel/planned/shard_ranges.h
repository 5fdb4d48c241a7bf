#pragma once
// Which rank of those that have the same stage owns which range of the stage's flat buffers, where they share its state
// (plan key `zero`): about equal ranges, cut at borders of the update's blocks (optim/update.h), so that every block is
// updated, and its norm taken, by one rank. Pure functions.

#include <cstddef>
#include <span>
#include <vector>

#include "collective/topology.h"

namespace echelon {

struct HeldParameter {    // of a stage
  std::size_t entry = 0;  // in the table of the whole model
  std::size_t offset = 0, size = 0;
  bool trained = false;  // by this stage; else it is a copy, or never changes
};

// By member; together they are [0, floats). Some may be empty.
std::vector<Range> shard_ranges(std::span<const HeldParameter> parameters, std::size_t floats, int members);

inline std::size_t largest_range(std::span<const Range> ranges) {
  std::size_t most = 0;
  for (const Range& r : ranges) most = r.count() > most ? r.count() : most;
  return most;
}

inline Range overlap(Range a, Range b) {
  const Range both{a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
  return both.begin < both.end ? both : Range{};
}

}  // namespace echelon
