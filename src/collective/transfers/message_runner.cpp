#include "collective/transfers/message_runner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "collective/combine.h"

namespace echelon {

namespace {

bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

// Combines a message with what is there. Pieces may begin and end within an element, whose bytes are then collected
// first.
struct CombiningSink {
  ElementType type;
  Reduction reduction;
  std::byte* into;
  std::array<std::byte, 8> torn{};
  std::size_t torn_bytes = 0;

  static void take(void* self, std::size_t offset, std::span<const std::byte> piece) {
    static_cast<CombiningSink*>(self)->add(offset, piece);
  }

  void add(std::size_t offset, std::span<const std::byte> piece) {
    const std::size_t item = size_of(type);
    if (torn_bytes > 0) {
      const std::size_t more = std::min(item - torn_bytes, piece.size());
      std::memcpy(&torn[torn_bytes], piece.data(), more);
      torn_bytes += more;
      offset += more;
      piece = piece.subspan(more);
      if (torn_bytes < item) return;
      std::byte* at = into + offset - item;
      combine(type, reduction, at, at, torn.data(), 1);
      torn_bytes = 0;
    }
    const std::size_t whole = piece.size() / item;
    combine(type, reduction, into + offset, into + offset, piece.data(), whole);
    torn_bytes = piece.size() - whole * item;
    if (torn_bytes > 0) std::memcpy(torn.data(), piece.data() + whole * item, torn_bytes);
  }
};

}  // namespace

MessageRunner::MessageRunner(Group& group, const CollectiveOperation& operation, ConstTypedSpan out, TypedSpan in,
                             Reduction reduction)
    : state_(group.state()),
      operation_(operation),
      out_(out),
      in_(in),
      reduction_(reduction),
      item_(size_of(in.type)),
      same_memory_(out.data == in.data) {
  state_.sends.clear();
}

MessageRunner::~MessageRunner() { state_.sends.clear(); }

void MessageRunner::run(const Transfer& t) {
  // Both directions use the same range: what arrives goes to scratch memory until our data has been sent.
  const bool aside = t.from >= 0 && t.to >= 0 && same_memory_ && overlap(t.in, t.out);
  CombiningSink sink{.type = in_.type, .reduction = reduction_, .into = in_.data + t.in.begin * item_};
  Work arriving;  // after `sink`, which it uses
  if (t.from >= 0) {
    const Rank peer = state_.rank(t.from);
    const std::size_t bytes = t.in.count() * item_;
    std::byte* into = sink.into;
    if (aside)
      into = state_.scratch(bytes).data();
    else if (same_memory_)
      wait_until_sent(t.in);
    if (t.reduce && !aside)
      arriving = state_.world.receive(peer, state_.channel, operation_.label(t.step), bytes,
                                      Sink{&sink, &CombiningSink::take});
    else
      arriving = state_.world.receive(peer, state_.channel, operation_.label(t.step), std::span(into, bytes));
  }
  if (t.to >= 0) {
    const Rank peer = state_.rank(t.to);
    state_.sends.push_back({state_.world.send(peer, state_.channel, operation_.label(t.step),
                                              std::span(out_.data + t.out.begin * item_, t.out.count() * item_)),
                            t.out, peer});
  }
  if (t.from >= 0) {
    state_.wait_policy.wait(arriving, state_.rank(t.from));
    if (aside) {
      wait_until_sent(t.in);
      const std::byte* arrived = state_.scratch(t.in.count() * item_).data();
      if (t.reduce)
        combine(in_.type, reduction_, sink.into, sink.into, arrived, t.in.count());
      else if (t.in.count() > 0)
        std::memcpy(sink.into, arrived, t.in.count() * item_);
    }
  }
  // A long list of sends would only cost memory.
  if (state_.sends.size() >= 256) finish();
}

void MessageRunner::wait_until_sent(Range range) {
  auto& sends = state_.sends;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (overlap(sends[i].range, range)) {
      state_.wait_policy.wait(sends[i].work, sends[i].peer);
    } else {
      if (kept != i) std::swap(sends[kept], sends[i]);
      ++kept;
    }
  }
  sends.resize(kept);
}

void MessageRunner::finish() {
  for (PendingTransfer& send : state_.sends) state_.wait_policy.wait(send.work, send.peer);
  state_.sends.clear();
}

}  // namespace echelon
