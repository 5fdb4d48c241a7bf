// Every member gets the combination of one part: in a ring (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009),
// or, where all data lies in shared memory, by reading it there.

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/combine.h"
#include "collective/shared_memory/shared_view.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

void reduce_scatter(Group& group, TypedSpan data, Reduction reduction, std::string_view name) {
  reduce_scatter(group, data, group.state().equal_parts(data.count), reduction, name);
}

void reduce_scatter(Group& group, TypedSpan data, std::span<const Range> parts, Reduction reduction,
                    std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(static_cast<int>(parts.size()) == n, "one part for each member");
  CollectiveOperation operation(group, OperationKind::reduce_scatter, data.type, reduction, data.count, name);
  if (n == 1) return;
  const Range mine = parts[static_cast<std::size_t>(index)];
  if (const SharedView view(group, data); view) {
    for (int m = 0; m < n; ++m)
      if (m != index) {
        std::byte* at = data.part(mine.begin, mine.count()).data;
        combine(data.type, reduction, at, at, view.of(m).part(mine.begin, mine.count()).data, mine.count());
      }
    view.leave();
  } else {
    MessageRunner runner(group, operation, data, reduction);
    plan_ring_reduce_scatter(n, index, parts, 0, runner);
    runner.finish();
  }
  if (reduction == Reduction::mean) divide(data.type, data.part(mine.begin, 0).data, mine.count(), n);
}

}  // namespace echelon
