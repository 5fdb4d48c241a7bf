// No member returns before all have called. In shared memory by the control segment's barrier; with messages by
// dissemination (Hensgen, Finkel and Manber, IJPP 17, 1988): in round k each member sends to the one 2^k places on, and
// after ceil(log2 n) rounds each has heard, directly or not, from all.

#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"

namespace echelon {

void barrier(Group& group, std::string_view name) {
  const int n = group.size(), index = group.index();
  CollectiveOperation operation(group, OperationKind::barrier, ElementType::bytes, Reduction::sum, 0, name);
  if (n == 1) return;
  if (ControlSegment* control = group.state().control.get()) {
    group.state().barrier();
    control->check_same_operation();
    return;
  }
  MessageRunner runner(group, operation, TypedSpan{}, Reduction::sum);
  for (int k = 1, step = 0; k < n; k *= 2, ++step)
    runner.run({.to = (index + k) % n, .from = (index + n - k) % n, .step = step});
  runner.finish();
}

}  // namespace echelon
