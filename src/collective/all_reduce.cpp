#include "collective/all_reduce.h"

#include <limits>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/transfers/message_runner.h"

namespace echelon {

const Algorithm& choose_all_reduce(Group& group, std::size_t bytes) {
  GroupState& state = group.state();
  if (state.chosen && state.chosen_bytes == bytes) return *state.chosen;
  const LinkCosts& link = link_costs(group);
  const Algorithm* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (a.why_not && !a.why_not(group).empty()) continue;
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

void all_reduce(Group& group, TypedSpan data, Reduction reduction, const AllReduceOptions& options) {
  if (options.algorithm && options.algorithm->why_not)
    if (const std::string_view reason = options.algorithm->why_not(group); !reason.empty())
      bad_input("all-reduce by '{}' is not possible: {}", options.algorithm->name, reason);
  const int n = group.size();
  const Algorithm* algorithm = options.algorithm;
  if (!algorithm && n > 1) algorithm = &choose_all_reduce(group, data.bytes());
  CollectiveOperation operation(group, OperationKind::all_reduce, data.type, reduction, data.count, options.name);
  if (n == 1) return;
  if (algorithm->run) {
    algorithm->run(group, data, reduction);
    return;
  }
  MessageRunner runner(group, operation, data, reduction);
  algorithm->plan({.n = n,
                   .index = group.index(),
                   .count = data.count,
                   .item = size_of(data.type),
                   .hosts = &group.state().hosts()},
                  runner);
  runner.finish();
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, n);
}

}  // namespace echelon
