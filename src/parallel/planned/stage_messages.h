#pragma once
// The messages between the stages of a split model, as a rank sends and receives them. What is sent is copied into a
// buffer, and the rank goes on; if all buffers of a message are still under way it waits for the oldest. Buffers lie in
// memory that all ranks see, where there is any: a receiver then reads them while the sender computes. A wait has a
// name, "message of stage 2, micro-batch 5", and a deadline (collective/wait_policy.h).
//
// One thread uses it. Allocates nothing once every size of micro-batch has been prepared. Throws PeerLost, Mismatch,
// TooLate.

#include <array>
#include <vector>

#include "collective/group.h"
#include "graph/communicator.h"
#include "plan/layout.h"
#include "plan/place.h"
#include "tensor/buffer.h"
#include "world/world.h"

namespace echelon {

class StageMessages final : public Communicator {
 public:
  // Makes buffers for these messages, those of the largest micro-batch. Collective. Group and layout must outlive it.
  StageMessages(Group& group, const PlanLayout& layout, const std::vector<StageMessage>& messages);
  // What a rank has buffers for, in bytes: the same on all ranks.
  static std::size_t buffer_bytes(const PlanLayout& layout, const std::vector<StageMessage>& messages);

  // Makes more buffers where messages of another size need them.
  void prepare(const std::vector<StageMessage>& messages);
  // What follows is about these, which must stay where they are.
  void use(const std::vector<StageMessage>& messages) { messages_ = &messages; }
  void send(int message, const StepContext& step, std::span<const std::byte> bytes) override;
  void receive(int message, const StepContext& step, std::span<std::byte> into) override;
  void drain();  // until all that was sent has arrived

  std::size_t bytes() const { return allocated_; }  // of all buffers
  double sent() const { return sent_; }             // bytes, to other ranks

 private:
  struct Outgoing {
    struct Slot {
      std::span<std::byte> memory;
      Buffer own;  // where the memory in common is not enough
      Work work;
      Rank to = 0;
    };
    std::vector<Slot> slots;
    std::size_t next = 0;   // messages that were sent
    std::size_t taken = 0;  // the same of those that another stage of this rank has received
  };
  struct Line {
    std::vector<Outgoing> outgoing;  // by message
  };
  Line& line_of(const StepContext& step) { return lines_[static_cast<std::size_t>(layout_.line_of(int(step.shard)))]; }
  Rank rank_of(int stage, int part, const StepContext& step) const;
  bool by_micro_batch(const Outgoing& out) const;  // whether each micro-batch has a slot of its own
  Label label(int message, const StepContext& step) const;
  Channel channel(int message, const StepContext& step) const;
  void wait(Work& work, Rank peer, int stage, int part, const StepContext& step, const Label& label);

  World& world_;
  const PlanLayout& layout_;
  const int replica_;
  std::span<std::byte> free_;  // of the memory in common
  std::size_t allocated_ = 0;
  double sent_ = 0;
  WaitPolicy wait_policy_;
  const std::vector<StageMessage>* messages_ = nullptr;
  std::vector<Line> lines_;
  std::array<char, 64> name_{};  // of the wait that is under way
};

}  // namespace echelon
