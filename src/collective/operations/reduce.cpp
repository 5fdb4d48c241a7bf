// The combination of all members' data at the root. Small data goes up a binomial tree; large data is reduced and
// scattered in a ring, then gathered at the root (Rabenseifner, ICCS 2004).

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/combine.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

void reduce(Group& group, TypedSpan data, Reduction reduction, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  CollectiveOperation operation(group, OperationKind::reduce, data.type, reduction, data.count, name);
  if (n == 1) return;
  MessageRunner runner(group, operation, data, reduction);
  if (data.bytes() <= 65536 || n == 2) {
    plan_binomial_reduce(n, index, root, {0, data.count}, 0, runner);
  } else {
    const auto parts = group.state().equal_parts(data.count);
    const int step = plan_ring_reduce_scatter(n, index, parts, 0, runner);
    plan_flat_gather(n, index, root, parts, step, runner);
  }
  runner.finish();
  if (reduction == Reduction::mean && index == root) divide(data.type, data.data, data.count, n);
}

}  // namespace echelon
