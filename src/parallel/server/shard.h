#pragma once
// One server: holds the shared sides of a part of the model, and a task that reads the messages sent to it. Workers
// push contributions and get answers; when, is the sync's decision (parallel/sync.h):
//
//   in rounds (_rounds.cpp)         a round's contributions are added up; when enough have come it is concluded, and
//                                   everybody who has contributed gets the answer. Who comes too late for a round gets
//                                   the present answer; its contribution is dropped, and counted.
//   bounded (ssp, essp, delay)      contributions are merged as they come; a worker that asks for parameters gets them
//                                   as soon as all others' updates that it must have seen are in (essp: everybody gets
//                                   them whenever the slowest has made a step, without asking)
//   value                           the same, but what holds an answer back is how far the weights have moved since
//                                   the slowest worker has read them
//   async, approximate              contributions are merged as they come, and answered at once (approximate: what has
//                                   changed enough also goes to the other sites)

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/server/chain.h"
#include "parallel/server/factors.h"
#include "parallel/server/keys.h"
#include "parallel/server/sites.h"

namespace echelon::exchanges {

struct ServerPlace {
  std::size_t first = 0;           // the number of its first key among all
  std::vector<Address> writers;    // who contribute, and get their answers at these addresses
  int position = 0, replicas = 1;  // in its chain (server_chain.h)
  std::int64_t dies_at = -1;       // an experiment: it loses its state after so many updates
  FilterSettings filters = {};
  bool factors = false;                 // pushes have them (server_factors.h)
  std::vector<std::size_t> order = {};  // of its keys, in which it answers in every round; empty: as they are concluded
  std::vector<Rank> peers = {};         // the servers of the same keys in other sites (server_sites.h)
};

class ServerShard {
 public:
  ServerShard(const ExchangeParts& parts, std::span<const Key> keys, const ServerPlace& place);
  ~ServerShard();

  // While the task is idle (after `drain`):
  const std::vector<Rank>& peers() const { return place_.peers; }
  bool has_the_model() const;  // the first of its chain that has not lost it
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();
  struct Counts {              // since the start, summed over keys
    double updates = 0;        // of the shared side
    double contributions = 0;  // merged
    double staleness = 0;      // sum over them: others' updates since the weights were read
    double dropped = 0;        // came too late
    double lead = 0;           // the largest number of steps by which a contribution was ahead of the slowest worker
    double moved = 0;  // sync value: the farthest from what the slowest has read at which another one began a step
    void add(const Counts& o) {
      updates += o.updates, contributions += o.contributions, staleness += o.staleness, dropped += o.dropped;
      lead = std::max(lead, o.lead), moved = std::max(moved, o.moved);
    }
  };
  const Counts& counts() const { return counts_; }
  double least_speed() const;  // of a worker, relative to the mean; 1 if none is known
  // At any time: whom the last message's key waits for, as far as it can tell; -1: for nobody.
  Rank latecomer() const { return latecomer_; }
  void stop();  // the task ends

 private:
  struct Slice {
    Range range;
    std::unique_ptr<SharedSide> shared;
    std::unique_ptr<Codec> decoder, answer_codec;  // null: plain numbers
    std::unique_ptr<FactorMessage> factors;        // the same
    std::int64_t version = 0;                      // updates
    std::vector<std::int64_t> wanted;   // steps that a worker's awaited answer must have seen; -1: it awaits none
    std::vector<std::int64_t> warm;     // updates that it must have seen; 0: it awaits none
    std::vector<std::int64_t> clocks;   // steps merged, by worker
    std::vector<std::int64_t> awaited;  // replicas: steps up to which it has awaited an answer without a contribution
    std::vector<Buffer> read;           // sync value: the weights that each worker has read last
    // In rounds:
    Buffer sum;         // of the round that is open
    double shares = 0;  // that have come to it
    double lr = 0;
    int came = 0;
    std::size_t added = 0;                        // of those, so many are in the sum
    std::vector<std::optional<Message>> waiting;  // the others, by writer: everybody's turn comes in the writers' order
    std::size_t turn = 0;                         // whose it is
    std::int64_t round = 0;
    bool held = false;                            // concluded, but others are to be answered first
    std::vector<Message> early;                   // contributions to later rounds
    std::vector<FilterReader> filters;            // by worker
    std::unique_ptr<SignificantChanges> changes;  // sites
    std::vector<std::byte> last_answer;  // encoded, of the last round: for who comes late, or has lost its answer
  };

  void handle(Message& message);
  Rank latecomer_of(const Slice& s) const;
  bool have_all_left() const;
  // server_chain.cpp
  bool is_passed(Message& message);
  void pass_on(const Message& message, bool flushes);
  void learn_of_lost(LostMembers lost);
  bool was_seen(const Slice& s, const Message& message) const;
  void lose_state();
  void tell_lost(Rank writer);
  int next_member() const;
  Rank member_rank(int position) const;
  bool is_last() const { return next_member() == place_.replicas; }
  // server_shard_mirror.cpp
  void tell_sites(Slice& s, std::uint32_t key);
  void take_site_change(const Message& message);
  bool is_ahead_of_sites() const;
  std::int64_t site_clock() const;

  void handle_flush(const Message& message, bool asks_again);
  void merge(Slice& s, const Message& message);
  void read_factors(const Slice& s, const Message& message, std::span<float> out);
  void answer_those_who_may(Slice& s, std::uint32_t key);
  void answer(Slice& s, std::uint32_t key, Rank to, std::span<const std::byte> bytes);
  std::span<const std::byte> encoded_answer(Slice& s, std::uint32_t key);
  double moved(const Slice& s, Rank reader) const;
  std::int64_t oldest(const Slice& s) const;
  void measure_speed(Rank worker);
  double speed_of(Rank worker) const;

  // server_shard_rounds.cpp
  void join_round(Slice& s, std::uint32_t key, Message& message, bool seen);
  void take_contribution(Slice& s, std::uint32_t key, Message& message);
  void add(Slice& s, std::uint32_t key, const Message& message);
  void add_in_turn(Slice& s, std::uint32_t key);
  void close_rounds(Slice& s, std::uint32_t key);
  void conclude(Slice& s, std::uint32_t key);
  void answer_round(Slice& s, std::uint32_t key);
  void tell_to_hand_in(const Slice& s, Rank first);

  ExchangeParts parts_;
  ServerPlace place_;
  std::size_t first_;
  std::vector<Address> writers_;
  std::vector<int> reply_tag_;  // by rank
  std::vector<Slice> slices_;
  Buffer contribution_, bytes_;
  Buffer product_;  // scratch
  Counts counts_;
  std::size_t next_answer_ = 0;  // in place_.order
  LostMembers lost_ = 0;         // of its chain, perhaps itself, as far as it has heard
  PassedMessages passed_;
  std::vector<std::int64_t> flushes_;      // the last that was handled, by worker
  std::vector<std::int64_t> site_clocks_;  // how far other sites are, by peer
  std::int64_t told_clock_ = 0;            // to them
  std::vector<char> gone_;                 // by worker: no contribution of it will come before all have met
  std::vector<double> began_, interval_;   // by worker: when it began to compute, and how long it usually does
  std::atomic<Rank> latecomer_ = -1;
  std::unique_ptr<Task> task_;  // last
};

}  // namespace echelon::exchanges
