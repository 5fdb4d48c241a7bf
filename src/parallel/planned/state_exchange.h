#pragma once
// How the ranks that have the same stage share its parameters and the sums of its gradients (plan keys zero=2 and 3):
// what the stage's graph asks for while it runs (plan/shard_state.h). Each rank owns a range of the stage's flat
// buffers (parallel/planned/shard_ranges.h).
//
// A gather: in shared memory, a rank copies a parameter's pieces from where the owners have them; elsewhere the owners
// send them. Parameters change only between drain() and the next start_step().
// A contribution: gradients are collected in buckets (gradient_buckets.h); a full one goes to the owners of its pieces,
// and is added up there in the fixed tree over shards, one shard after the other, when the next one is full. All ranks
// run the same list of tasks, so they call these in the same order. Messages between stages go to `messages`.
//
// One thread uses it. Throws PeerLost, Mismatch, TooLate. Allocates nothing once every parameter was gathered.

#include <array>
#include <vector>

#include "collective/group.h"
#include "collective/shard_tree.h"
#include "collective/topology.h"
#include "graph/communicator.h"
#include "graph/program.h"
#include "parallel/planned/gradient_buckets.h"

namespace echelon {

class StateExchange final : public Communicator {
 public:
  struct Shares {
    const ParameterTable* table = nullptr;         // of the stage: entry i is parameter i of its graph
    std::vector<Range> ranges;                     // by member
    std::span<float> parameters = {};              // this rank's range of them, if they are shared
    std::span<float> allocated = {};               // the memory that they lie in, from the group
    bool in_files = false;                         // they lie on the disk: what is needed soon is fetched ahead
    ShardReducer* sums = nullptr;                  // of this rank's range, over all shards
    std::span<const std::byte> sums_in_file = {};  // where these lie, if on the disk
    GradientBuckets buckets = {};
    int stage = 0;
  };
  // `group` has the ranks of the stage in the order of their shards; `messages` must outlive it. Collective.
  StateExchange(Group& group, Communicator& messages, Shares shares);

  void send(int message, const StepContext& step, std::span<const std::byte> bytes) override {
    messages_.send(message, step, bytes);
  }
  void receive(int message, const StepContext& step, std::span<std::byte> into) override {
    messages_.receive(message, step, into);
  }
  void start_gather(int parameter, std::span<std::byte> into) override;
  void finish_gather(int parameter, std::span<std::byte> into) override;
  void contribute(int parameter, const StepContext& step, std::span<const std::byte> gradient) override;

  void start_step();  // all ranks have their parameters
  void drain();       // until all sums are complete, and nobody reads parameters: before they change

 private:
  struct Transfer {
    Work work;
    Rank peer = 0;
  };
  struct Slot {  // for a bucket
    std::span<float> memory;
    int bucket = -1;  // -1: free
    int missing = 0;  // gradients
    int first_shard = 0;
    std::vector<Transfer> sending;
  };
  Range range_of(int parameter) const;
  Range own_range() const { return shares_.ranges[static_cast<std::size_t>(gradients_.index())]; }
  std::span<const std::byte> own_piece(Range of_parameter) const;
  void wait(Transfer& transfer, const char* what, std::size_t parameter);
  void wait_for_sent(std::vector<Transfer>& sending, const char* what);
  Slot& slot_of(int bucket, int first_shard);
  void send_pieces(std::span<const float> values, Range elements, std::vector<Transfer>& sending);
  void add_pieces(std::span<const float> values, Range elements, int first_shard, std::size_t parameter);
  void add_pending();

  Group gathers_, gradients_;
  World& world_;
  Communicator& messages_;
  const Shares shares_;
  std::vector<const std::byte*> parameters_of_;  // by member, in shared memory; else empty
  std::vector<std::vector<Transfer>> arriving_;  // by parameter
  std::vector<Transfer> sent_;                   // parameters
  std::vector<Transfer> sending_;                // a large gradient
  std::vector<Slot> slots_;
  Slot* pending_ = nullptr;  // sent, and to be added up
  std::uint32_t gathers_begun_ = 0;
  std::uint32_t sends_ = 0, sums_ = 0;  // of gradients: the two are in the same order
  std::array<char, 64> name_{};         // of the wait that is under way
};

}  // namespace echelon
