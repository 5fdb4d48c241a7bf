// Every member sends a part to every other: in step k to the member k places on, while it receives from the member k
// places back, so that no link carries two messages at once (pairwise exchange; Thakur, Rabenseifner and Gropp 2005).

#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"

namespace echelon {

void all_to_all(Group& group, ConstTypedSpan out, TypedSpan in, std::string_view name) {
  const auto n = static_cast<std::size_t>(group.size());
  invariant(out.count == in.count && out.count % n == 0, "n equal parts go out and come in");
  const std::span<const Range> parts = group.state().equal_parts(out.count);
  all_to_all(group, out, parts, in, parts, name);
}

void all_to_all(Group& group, ConstTypedSpan out, std::span<const Range> out_parts, TypedSpan in,
                std::span<const Range> in_parts, std::string_view name) {
  const int n = group.size(), index = group.index();
  invariant(out.type == in.type, "data of the same type goes out and comes in");
  invariant(out.data != in.data || out.count == 0, "what goes out and what comes in are distinct");
  // Members may bring different counts, so none is announced that others could compare with theirs.
  CollectiveOperation operation(group, OperationKind::all_to_all, in.type, Reduction::sum, 0, name);
  MessageRunner runner(group, operation, out, in, Reduction::sum);
  for (int k = 1; k < n; ++k) {
    const int to = (index + k) % n, from = (index + n - k) % n;
    runner.run({.to = to,
                .out = out_parts[static_cast<std::size_t>(to)],
                .from = from,
                .in = in_parts[static_cast<std::size_t>(from)],
                .step = k});
  }
  const Range own = in_parts[static_cast<std::size_t>(index)];
  if (own.count() > 0)
    std::memcpy(in.part(own.begin, 0).data, out.part(out_parts[static_cast<std::size_t>(index)].begin, 0).data,
                own.count() * size_of(in.type));
  runner.finish();
}

}  // namespace echelon
