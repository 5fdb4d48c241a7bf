#pragma once
// All-reduce: every member brings `count` numbers, and every member ends up with their sum, minimum, maximum or mean,
// element by element, the same bits on all. In place. Any count (also 0 or fewer than members), any number of members.
//
// There are many ways to do it (algorithms.h); `auto` takes the one that should be fastest for this size on the links
// that were measured. Throws PeerLost, Mismatch, TooLate: then the group is of no use any more.

#include <string_view>

#include "collective/group.h"
#include "collective/typed_span.h"

namespace echelon {

struct Algorithm;

struct AllReduceOptions {
  const Algorithm* algorithm = nullptr;  // null: auto
  std::string_view name = {};            // the caller's word for this operation ("bucket 7"), for notices
};

// BadInput if the algorithm cannot work here (native without MPI).
void all_reduce(Group& group, TypedSpan data, Reduction reduction, const AllReduceOptions& how = {});

template <typename T>
void all_reduce(Group& group, std::span<T> data, Reduction reduction = Reduction::sum,
                const AllReduceOptions& how = {}) {
  all_reduce(group, typed_span(data), reduction, how);
}

// What auto takes. Measures the links on first use, so it is a collective call.
const Algorithm& choose_all_reduce(Group& group, std::size_t bytes);

}  // namespace echelon
