#pragma once
// One server: holds the shared sides of a part of the model, and a task that reads the letters sent to it. Workers push
// contributions and get answers; when, is the sync's decision (parallel/sync.h):
//
//   in rounds (server_rounds.cpp)   a round's contributions are added up; when enough have come it is concluded, and
//                                   everybody who has contributed gets the answer. Who comes too late for a round gets
//                                   the present answer; its contribution is dropped, and counted.
//   bounded (ssp, essp, delay)      contributions are merged as they come; a worker that asks for parameters gets them
//                                   as soon as all others' updates that it must have seen are in (essp: everybody gets
//                                   them whenever the slowest has made a step, without asking)
//   value                           the same, but what holds an answer back is how far the weights have moved since
//                                   the slowest worker has read them
//   async                           contributions are merged as they come, and answered at once

#include <memory>
#include <vector>

#include "parallel/exchanges/server_keys.h"

namespace echelon::exchanges {

class ServerShard {
 public:
  // `keys` are those of this rank; `first` is the number of the first of them among all. `writers` contribute, and get
  // their answers at these addresses.
  ServerShard(const ExchangeParts& parts, std::span<const Key> keys, std::size_t first, std::vector<Address> writers);
  ~ServerShard();

  // While the task is idle (after `settle`):
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();
  struct Counts {              // since the start, summed over keys
    double updates = 0;        // of the shared side
    double contributions = 0;  // merged
    double staleness = 0;      // sum over them: others' updates since the weights were read
    double dropped = 0;        // came too late
    double lead = 0;           // the largest number of steps by which a contribution was ahead of the slowest worker
    double moved = 0;  // sync value: the farthest from what the slowest has read at which another one began a step
  };
  const Counts& counts() const { return counts_; }
  double least_speed() const;  // of a worker, relative to the mean; 1 if none is known
  void stop();                 // the task ends

 private:
  struct Slice {
    Range range;
    std::unique_ptr<SharedSide> shared;
    std::unique_ptr<Codec> decoder, answer_codec;  // null: plain numbers
    std::int64_t version = 0;                      // updates
    std::vector<std::int64_t> wanted;  // steps that a worker's awaited answer must have seen; -1: it awaits none
    std::vector<std::int64_t> warm;    // updates that it must have seen; 0: it awaits none
    std::vector<std::int64_t> clocks;  // steps merged, by worker
    std::vector<Buffer> read;          // sync value: the weights that each worker has read last
    // In rounds:
    Buffer sum;         // of the round that is open
    double shares = 0;  // that have come to it
    double lr = 0;
    int came = 0;
    std::int64_t round = 0;
    std::vector<Letter> early;           // contributions to later rounds
    std::vector<std::byte> last_answer;  // sync quorum with encoded answers: for those who come late
  };

  void run();
  void handle(Letter& letter);
  void merge(Slice& s, const Letter& letter);
  void answer_those_who_may(Slice& s, std::uint32_t key);
  void answer(Slice& s, std::uint32_t key, Rank to, std::span<const std::byte> bytes);
  std::span<const std::byte> encoded_answer(Slice& s, std::uint32_t key);
  double moved(const Slice& s, Rank reader) const;
  std::int64_t oldest(const Slice& s) const;
  void measure_speed(Rank worker);
  double speed_of(Rank worker) const;

  // server_rounds.cpp
  void join_round(Slice& s, std::uint32_t key, Letter& letter);
  void add(Slice& s, std::uint32_t key, const Letter& letter);
  void close_rounds(Slice& s, std::uint32_t key);
  void conclude(Slice& s, std::uint32_t key);
  void tell_to_hand_in(const Slice& s, Rank first);

  ExchangeParts parts_;
  std::size_t first_;
  std::vector<Address> writers_;
  std::vector<int> reply_box_;  // by rank
  std::vector<Slice> slices_;
  Buffer contribution_, bytes_;
  Counts counts_;
  std::vector<char> gone_;                // by worker: no contribution of it will come in this run
  std::vector<double> began_, interval_;  // by worker: when it began to compute, and how long it usually does
  std::unique_ptr<Task> task_;            // last
};

}  // namespace echelon::exchanges
