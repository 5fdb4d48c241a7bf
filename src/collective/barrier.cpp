// All arrive before any goes on. By messages: dissemination (Hensgen, Finkel and Manber, IJPP 17, 1988): in round k
// each tells the member 2^k places on, and after ceil(log2 n) rounds each has heard of all.

#include "collective/collectives.h"
#include "collective/run_moves.h"

namespace echelon {

void barrier(Group& group, std::string_view name) {
  const int n = group.size(), index = group.index();
  Call call(group, OperationKind::barrier, ElementType::bytes, Reduction::sum, 0, name);
  if (n == 1) return;
  if (Meeting* meeting = group.state().meeting.get()) {
    meeting->meet(group.state().wait_policy);
    meeting->compare();
    return;
  }
  MoveRunner runner(group, call, TypedSpan{}, Reduction::sum);
  for (int k = 1, step = 0; k < n; k *= 2, ++step)
    runner.move({.to = (index + k) % n, .from = (index + n - k) % n, .step = step});
  runner.finish();
}

}  // namespace echelon
