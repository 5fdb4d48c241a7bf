#include "collective/run_moves.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "collective/combine.h"

namespace echelon {

namespace {

bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

// Combines a message with what is there. Pieces may begin and end within a number: its bytes are collected first.
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

MoveRunner::MoveRunner(Group& group, const Call& call, ConstTypedSpan out, TypedSpan in, Reduction reduction)
    : state_(group.state()),
      call_(call),
      out_(out),
      in_(in),
      reduction_(reduction),
      item_(size_of(in.type)),
      same_memory_(out.data == in.data) {
  state_.sends.clear();
}

MoveRunner::~MoveRunner() { state_.sends.clear(); }

void MoveRunner::move(const Move& m) {
  // An exchange in which both directions use the same range: what arrives must wait beside until ours has been read.
  const bool aside = m.from >= 0 && m.to >= 0 && same_memory_ && overlap(m.in, m.out);
  CombiningSink sink{.type = in_.type, .reduction = reduction_, .into = in_.data + m.in.begin * item_};
  Work arriving;  // after what it names
  if (m.from >= 0) {
    const Rank peer = state_.rank(m.from);
    const std::size_t bytes = m.in.count() * item_;
    std::byte* into = sink.into;
    if (aside)
      into = state_.scratch(bytes).data();
    else if (same_memory_)
      wait_until_sent(m.in);
    if (m.reduce && !aside)
      arriving =
          state_.world.receive(peer, state_.channel, call_.label(m.step), bytes, Sink{&sink, &CombiningSink::take});
    else
      arriving = state_.world.receive(peer, state_.channel, call_.label(m.step), std::span(into, bytes));
  }
  if (m.to >= 0) {
    const Rank peer = state_.rank(m.to);
    state_.sends.push_back({state_.world.send(peer, state_.channel, call_.label(m.step),
                                              std::span(out_.data + m.out.begin * item_, m.out.count() * item_)),
                            m.out, peer});
  }
  if (m.from >= 0) {
    state_.wait_policy.wait(arriving, state_.rank(m.from));
    if (aside) {
      wait_until_sent(m.in);
      const std::byte* arrived = state_.scratch(m.in.count() * item_).data();
      if (m.reduce)
        combine(in_.type, reduction_, sink.into, sink.into, arrived, m.in.count());
      else if (m.in.count() > 0)
        std::memcpy(sink.into, arrived, m.in.count() * item_);
    }
  }
  // Long lists of sends that nobody has to wait for would only cost memory.
  if (state_.sends.size() >= 256) finish();
}

void MoveRunner::wait_until_sent(Range range) {
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

void MoveRunner::finish() {
  for (PendingSend& send : state_.sends) state_.wait_policy.wait(send.work, send.peer);
  state_.sends.clear();
}

}  // namespace echelon
