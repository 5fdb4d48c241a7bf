// Every member gets every member's part: in a ring (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005); small parts of
// many members by way of one of them, in 2 n messages instead of n squared; or, where all data lies in shared memory,
// by copying it from there.

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/shared_memory/shared_view.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

namespace {
constexpr int most_in_a_ring = 64;             // members
constexpr std::size_t least_in_a_ring = 4096;  // bytes of one part
}  // namespace

void all_gather(Group& group, ConstTypedSpan mine, TypedSpan all, std::string_view name) {
  invariant(mine.count * static_cast<std::size_t>(group.size()) == all.count && mine.type == all.type,
            "there is room for all members' data");
  std::byte* own = all.part(mine.count * static_cast<std::size_t>(group.index()), mine.count).data;
  if (own != mine.data && mine.count > 0) std::memmove(own, mine.data, mine.bytes());
  all_gather(group, all, group.state().equal_parts(all.count), name);
}

void all_gather(Group& group, TypedSpan all, std::span<const Range> parts, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(static_cast<int>(parts.size()) == n, "one part for each member");
  CollectiveOperation operation(group, OperationKind::all_gather, all.type, Reduction::sum, all.count, name);
  if (n == 1) return;
  if (const SharedView view(group, all); view) {
    for (int k = 1; k < n; ++k) {  // each begins with another member, so that they do not all read the same memory
      const int m = (index + k) % n;
      const Range part = parts[static_cast<std::size_t>(m)];
      const TypedSpan from = view.of(m).part(part.begin, part.count());
      if (part.count() > 0) std::memcpy(all.part(part.begin, 0).data, from.data, from.bytes());
    }
    view.leave();
  } else {
    MessageRunner runner(group, operation, all, Reduction::sum);
    if (n > most_in_a_ring && all.bytes() / static_cast<std::size_t>(n) < least_in_a_ring) {
      const int step = plan_flat_gather(n, index, 0, parts, 0, runner);
      plan_binomial_broadcast(n, index, 0, {0, all.count}, step, runner);
    } else {
      plan_ring_all_gather(n, index, parts, 0, runner);
    }
    runner.finish();
  }
}

}  // namespace echelon
