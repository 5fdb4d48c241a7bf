// Every member's part to all: in a ring (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005), or, where all see all
// numbers, by copying them from where they lie.

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/plans.h"
#include "collective/run_moves.h"
#include "collective/shared_view.h"

namespace echelon {

void all_gather(Group& group, ConstTypedSpan mine, TypedSpan all, std::string_view name) {
  invariant(mine.count * static_cast<std::size_t>(group.size()) == all.count && mine.type == all.type,
            "there is room for all members' numbers");
  std::byte* own = all.part(mine.count * static_cast<std::size_t>(group.index()), mine.count).data;
  if (own != mine.data && mine.count > 0) std::memmove(own, mine.data, mine.bytes());
  all_gather(group, all, group.state().equal_parts(all.count), name);
}

void all_gather(Group& group, TypedSpan all, std::span<const Range> parts, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(static_cast<int>(parts.size()) == n, "one part for each member");
  Call call(group, OperationKind::all_gather, all.type, Reduction::sum, all.count, name);
  if (n == 1) return;
  if (const SharedView view(group, all); view) {
    for (int k = 1; k < n; ++k) {  // beginning with different members, so that they do not crowd
      const int m = (index + k) % n;
      const Range part = parts[static_cast<std::size_t>(m)];
      const TypedSpan from = view.of(m).part(part.begin, part.count());
      if (part.count() > 0) std::memcpy(all.part(part.begin, 0).data, from.data, from.bytes());
    }
    view.leave();
  } else {
    MoveRunner runner(group, call, all, Reduction::sum);
    plan_ring_all_gather(n, index, parts, 0, runner);
    runner.finish();
  }
}

}  // namespace echelon
