#pragma once
// Carries out the transfers of a collective (transfer.h) with messages of the group's world. Arriving data is combined
// piece by piece, where the bytes lie. Allocates nothing once the group has seen an operation of that size. Lives as
// long as the operation, on the task that uses the group. Throws PeerLost, Mismatch, TooLate.

#include "collective/group_state.h"
#include "collective/transfers/transfer.h"

namespace echelon {

class MessageRunner : public TransferRunner {
 public:
  // Sends from `out`, receives into `in` (often the same memory); ranges are of elements of `type`.
  MessageRunner(Group& group, const CollectiveOperation& operation, ConstTypedSpan out, TypedSpan in,
                Reduction reduction);
  MessageRunner(Group& group, const CollectiveOperation& operation, TypedSpan both, Reduction reduction)
      : MessageRunner(group, operation, both, both, reduction) {}
  ~MessageRunner();

  void run(const Transfer& transfer) override;
  void finish();  // waits until everything has been sent

 private:
  void wait_until_sent(Range range);  // until no send reads that range any more

  GroupState& state_;
  const CollectiveOperation& operation_;
  ConstTypedSpan out_;
  TypedSpan in_;
  Reduction reduction_;
  std::size_t item_;
  bool same_memory_;
};

}  // namespace echelon
