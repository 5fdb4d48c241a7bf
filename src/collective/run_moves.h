#pragma once
// Carries out the moves of a collective (move.h) with messages of the group's world. What arrives is combined on the
// way, piece by piece, where the bytes happen to lie. Allocates nothing once the group has seen an operation of that
// size.

#include "collective/group_state.h"
#include "collective/move.h"

namespace echelon {

class MoveRunner : public Mover {
 public:
  // Sends from `out`, receives into `in` (often the same memory); ranges are of elements of `type`.
  MoveRunner(Group& group, const Call& call, ConstTypedSpan out, TypedSpan in, Reduction reduction);
  MoveRunner(Group& group, const Call& call, TypedSpan both, Reduction reduction)
      : MoveRunner(group, call, both, both, reduction) {}
  ~MoveRunner();

  void move(const Move& move) override;
  void finish();  // waits until everything has been sent

 private:
  void wait_until_sent(Range range);  // until no send reads that range any more
  void receive(const Move& move, bool aside);

  GroupState& state_;
  const Call& call_;
  ConstTypedSpan out_;
  TypedSpan in_;
  Reduction reduction_;
  std::size_t item_;
  bool same_memory_;
};

}  // namespace echelon
