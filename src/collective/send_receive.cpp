// One message out and one in: what algorithms are made of whose messages differ in size from member to member.

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/run_moves.h"

namespace echelon {

void send_receive(Group& group, int to, ConstTypedSpan out, int from, TypedSpan in, std::string_view name) {
  invariant(out.type == in.type, "the same kind of numbers goes out and comes in");
  Call call(group, OperationKind::plain, in.type, Reduction::sum, in.count, name);
  MoveRunner runner(group, call, out, in, Reduction::sum);
  if (to >= 0 || from >= 0) runner.move({.to = to, .out = {0, out.count}, .from = from, .in = {0, in.count}});
  runner.finish();
}

}  // namespace echelon
