// One message out and one in: for algorithms whose message sizes differ from member to member (parallel/sum).

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"

namespace echelon {

void send_receive(Group& group, int to, ConstTypedSpan out, int from, TypedSpan in, std::string_view name) {
  invariant(out.type == in.type, "data of the same type goes out and comes in");
  CollectiveOperation operation(group, OperationKind::plain, in.type, Reduction::sum, in.count, name);
  MessageRunner runner(group, operation, out, in, Reduction::sum);
  if (to >= 0 || from >= 0) runner.run({.to = to, .out = {0, out.count}, .from = from, .in = {0, in.count}});
  runner.finish();
}

}  // namespace echelon
