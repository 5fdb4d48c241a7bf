// Every member's part to or from the root, each in a message of its own: the root's link has to carry all of it anyway.

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

void gather(Group& group, ConstTypedSpan mine, TypedSpan all, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  CollectiveOperation operation(group, OperationKind::gather, mine.type, Reduction::sum, mine.count, name);
  const std::size_t count = mine.count, own = count * static_cast<std::size_t>(index);
  if (index == root) {
    invariant(all.count == count * static_cast<std::size_t>(n) && all.type == mine.type, "there is room for all parts");
    if (count > 0 && all.part(own, 0).data != mine.data) std::memmove(all.part(own, 0).data, mine.data, mine.bytes());
  }
  MessageRunner runner(group, operation, mine, index == root ? all : TypedSpan{nullptr, 0, mine.type}, Reduction::sum);
  if (index != root) {
    runner.run({.to = root, .out = {0, count}});
  } else {
    plan_flat_gather(n, index, root, group.state().equal_parts(all.count), 0, runner);
  }
  runner.finish();
}

void scatter(Group& group, ConstTypedSpan all, TypedSpan mine, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  CollectiveOperation operation(group, OperationKind::scatter, mine.type, Reduction::sum, mine.count, name);
  const std::size_t count = mine.count, own = count * static_cast<std::size_t>(index);
  MessageRunner runner(group, operation, index == root ? all : ConstTypedSpan{nullptr, 0, mine.type}, mine,
                       Reduction::sum);
  if (index != root) {
    runner.run({.from = root, .in = {0, count}});
  } else {
    invariant(all.count == count * static_cast<std::size_t>(n) && all.type == mine.type, "every member has a part");
    plan_flat_scatter(n, index, root, group.state().equal_parts(all.count), 0, runner);
    if (count > 0 && all.part(own, 0).data != mine.data) std::memmove(mine.data, all.part(own, 0).data, mine.bytes());
  }
  runner.finish();
}

}  // namespace echelon
