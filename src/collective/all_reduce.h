#pragma once
// All-reduce: every member brings `count` elements, and every member ends up with their sum, minimum, maximum or mean,
// element by element, the same bits on all. In place. Any count (also 0 or fewer than members), any number of members.
//
// There are several algorithms (algorithms.h); by default the one is taken whose predicted time for this size is
// shortest on the measured links. Throws PeerLost, Mismatch, TooLate: the group cannot be used any more then.

#include <string_view>

#include "collective/group.h"
#include "collective/typed_span.h"

namespace echelon {

struct Algorithm;

struct AllReduceOptions {
  const Algorithm* algorithm = nullptr;  // a row of algorithms.h; null: auto
  std::string_view name = {};            // the caller's name for this operation ("bucket 7"), for notices
};

// BadInput if the algorithm cannot work here (native without MPI).
void all_reduce(Group& group, TypedSpan data, Reduction reduction, const AllReduceOptions& options = {});

template <typename T>
void all_reduce(Group& group, std::span<T> data, Reduction reduction = Reduction::sum,
                const AllReduceOptions& options = {}) {
  all_reduce(group, typed_span(data), reduction, options);
}

// What `auto` takes. Measures the links on first use, so it is a collective call.
const Algorithm& choose_all_reduce(Group& group, std::size_t bytes);

}  // namespace echelon
