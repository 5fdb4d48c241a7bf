// Any bytes that somebody asks a launcher's store, or that stand in a store as a job's membership, are answered or
// refused; a membership that is read survives being written and read again.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "member/membership.h"
#include "member/memory_store.h"
#include "member/store_messages.h"

int fuzz_member(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  double now = 0;
  MemoryStore store([&] { return now += 0.1; });
  store.grant(1, "node/a", "");
  const std::string answer = answer_store_question(store, text);
  invariant(!answer.empty() && answer.front() == '{', "every question has an answer");
  try {
    Membership m = read_membership(text);
    const std::string written = write_membership(m);
    invariant(read_membership(written) == m, "a membership changes when written and read again");
    if (may_form(m)) {
      form(m, std::string(64, 'a'));
      invariant(m.running() >= m.least && m.running() <= m.most, "a generation has as many nodes as it may");
    }
  } catch (const BadInput&) {
  }
  return 0;
}
