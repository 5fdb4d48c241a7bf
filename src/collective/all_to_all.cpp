// Every member has something for every other: in step k each sends to the member k places on and receives from the one
// k places back, so that no link is asked for twice at once (pairwise exchange; Thakur, Rabenseifner and Gropp 2005).

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/run_moves.h"

namespace echelon {

void all_to_all(Group& group, ConstNumbers out, Numbers in, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(out.count == in.count && out.type == in.type && out.count % static_cast<std::size_t>(n) == 0,
            "n equal parts go out and come in");
  invariant(out.data != in.data || out.count == 0, "what goes out and what comes in are distinct");
  Call call(group, MessageKind::all_to_all, in.type, Reduction::sum, in.count, name);
  MoveRunner runner(group, call, out, in, Reduction::sum);
  for (int k = 1; k < n; ++k) {
    const int to = (index + k) % n, from = (index + n - k) % n;
    runner.move(
        {.to = to, .out = part_of(to, n, out.count), .from = from, .in = part_of(from, n, in.count), .step = k});
  }
  const Range own = part_of(index, n, in.count);
  if (own.count() > 0)
    std::memcpy(in.part(own.begin, 0).data, out.part(own.begin, 0).data, own.count() * size_of(in.type));
  runner.finish();
}

}  // namespace echelon
