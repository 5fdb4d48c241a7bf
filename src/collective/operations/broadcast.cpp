// The root's data to all members. Small data goes down a binomial tree; large data is scattered and then gathered in a
// ring, so that the root sends it about twice instead of log2 n times (van de Geijn and Watts, Concurrency: Practice
// and Experience 9, 1997: the long-vector broadcast of Barnett et al.).

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

namespace {
constexpr std::size_t least_part = 4096;  // bytes: a ring of smaller ones would only be latency
}  // namespace

void broadcast(Group& group, TypedSpan data, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  CollectiveOperation operation(group, OperationKind::broadcast, data.type, Reduction::sum, data.count, name);
  if (n == 1) return;
  MessageRunner runner(group, operation, data, Reduction::sum);
  if (data.bytes() <= 65536 || n == 2 || data.bytes() / static_cast<std::size_t>(n) < least_part) {
    plan_binomial_broadcast(n, index, root, {0, data.count}, 0, runner);
  } else {
    const auto parts = group.state().equal_parts(data.count);
    const int step = plan_flat_scatter(n, index, root, parts, 0, runner);
    plan_ring_all_gather(n, index, parts, step, runner);
  }
  runner.finish();
}

}  // namespace echelon
