#pragma once
// How the ranks that have the same stage share its parameters and the sums of its gradients (plan keys zero=2 and 3):
// what the stage's graph asks for while it runs (plan/shard_state.h). Each rank owns a range of the stage's flat
// buffers (parallel/planned/shard_ranges.h).
//
// A gather: the owners of a parameter's pieces send them to the others, straight from where they lie; parameters do not
// change before drain(). A contribution: all ranks send the pieces of their micro-batch's gradient to the owners, who
// add them up in the fixed tree over shards, one shard after the other. All ranks run the same list of tasks, so they
// call these in the same order. Messages between stages go to `messages`.
//
// One thread uses it. Throws PeerLost, Mismatch, TooLate. Allocates nothing once every parameter was gathered.

#include <array>
#include <vector>

#include "collective/group.h"
#include "collective/shard_tree.h"
#include "collective/topology.h"
#include "graph/communicator.h"
#include "graph/program.h"

namespace echelon {

class StateExchange final : public Communicator {
 public:
  struct Shares {
    const ParameterTable* table = nullptr;  // of the stage: entry i is parameter i of its graph
    std::vector<Range> ranges;              // by member
    std::span<float> parameters = {};       // this rank's range of them, if they are shared
    ShardReducer* sums = nullptr;           // of this rank's range, over all shards
    int stage = 0;
  };
  // `group` has the ranks of the stage in the order of their shards; it is this object's own. `messages` must outlive
  // it.
  StateExchange(Group group, Communicator& messages, Shares shares);

  void send(int message, const StepContext& step, std::span<const std::byte> bytes) override {
    messages_.send(message, step, bytes);
  }
  void receive(int message, const StepContext& step, std::span<std::byte> into) override {
    messages_.receive(message, step, into);
  }
  void start_gather(int parameter, std::span<std::byte> into) override;
  void finish_gather(int parameter, std::span<std::byte> into) override;
  void contribute(int parameter, const StepContext& step, std::span<const std::byte> gradient) override;
  void drain();  // until all that was sent has arrived: before parameters change

 private:
  struct Transfer {
    Work work;
    Rank peer = 0;
  };
  Range range_of(int parameter) const;
  void wait(Transfer& transfer, const char* what, int parameter);
  void forget_sent();

  Group group_;
  World& world_;
  Communicator& messages_;
  const Shares shares_;
  std::vector<std::vector<Transfer>> arriving_;  // by parameter
  std::vector<Transfer> sent_;                   // parameters
  std::vector<Transfer> sending_;                // gradients
  std::uint32_t gathers_ = 0, contributions_ = 0;
  std::array<char, 64> name_{};  // of the wait that is under way
};

}  // namespace echelon
