// Every member's part to or from one of them, each in a message of its own: what the root's link has to carry anyway.

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/plans.h"
#include "collective/run_moves.h"

namespace echelon {

void gather(Group& group, ConstTypedSpan mine, TypedSpan all, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  Call call(group, OperationKind::gather, mine.type, Reduction::sum, mine.count, name);
  const std::size_t count = mine.count, own = count * static_cast<std::size_t>(index);
  if (index == root) {
    invariant(all.count == count * static_cast<std::size_t>(n) && all.type == mine.type, "there is room for all parts");
    if (count > 0 && all.part(own, 0).data != mine.data) std::memmove(all.part(own, 0).data, mine.data, mine.bytes());
  }
  MoveRunner runner(group, call, mine, index == root ? all : TypedSpan{nullptr, 0, mine.type}, Reduction::sum);
  if (index != root) {
    runner.move({.to = root, .out = {0, count}});
  } else {
    plan_flat_gather(n, index, root, group.state().equal_parts(all.count), 0, runner);
  }
  runner.finish();
}

void scatter(Group& group, ConstTypedSpan all, TypedSpan mine, int root, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(root >= 0 && root < n, "the root is a member of the group");
  Call call(group, OperationKind::scatter, mine.type, Reduction::sum, mine.count, name);
  const std::size_t count = mine.count, own = count * static_cast<std::size_t>(index);
  MoveRunner runner(group, call, index == root ? all : ConstTypedSpan{nullptr, 0, mine.type}, mine, Reduction::sum);
  if (index != root) {
    runner.move({.from = root, .in = {0, count}});
  } else {
    invariant(all.count == count * static_cast<std::size_t>(n) && all.type == mine.type, "every member has a part");
    plan_flat_scatter(n, index, root, group.state().equal_parts(all.count), 0, runner);
    if (count > 0 && all.part(own, 0).data != mine.data) std::memmove(mine.data, all.part(own, 0).data, mine.bytes());
  }
  runner.finish();
}

}  // namespace echelon
