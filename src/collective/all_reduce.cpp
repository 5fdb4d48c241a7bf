#include "collective/all_reduce.h"

#include <limits>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/run_moves.h"

namespace echelon {

const Algorithm& choose_all_reduce(Group& group, std::size_t bytes) {
  GroupState& state = group.state();
  if (state.chosen && state.chosen_bytes == bytes) return *state.chosen;
  const Link& link = link_of(group);
  const Algorithm* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (a.refuses && !a.refuses(group).empty()) continue;
    const double seconds = a.seconds(static_cast<double>(bytes), group.size(), link);
    if (seconds < least) {
      least = seconds;
      best = &a;
    }
  }
  state.chosen = best;
  state.chosen_bytes = bytes;
  return *best;
}

void all_reduce(Group& group, TypedSpan data, Reduction reduction, const AllReduceOptions& how) {
  const int n = group.size();
  const bool alone = n == 1;
  const Algorithm& algorithm = how.algorithm ? *how.algorithm
                               : alone       ? ring_all_reduce
                                             : choose_all_reduce(group, data.bytes());
  if (how.algorithm && algorithm.refuses)
    if (const std::string_view reason = algorithm.refuses(group); !reason.empty())
      bad_input("all-reduce by '{}' is not possible: {}", algorithm.name, reason);
  Call call(group, OperationKind::all_reduce, data.type, reduction, data.count, how.name);
  if (alone) return;
  if (algorithm.run) {
    algorithm.run(group, data, reduction);
    return;
  }
  MoveRunner runner(group, call, data, reduction);
  algorithm.plan(
      {.n = n, .index = group.index(), .count = data.count, .item = size_of(data.type), .site = &group.state().site()},
      runner);
  runner.finish();
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, n);
}

}  // namespace echelon
