#pragma once
// One server: holds the shared sides of a part of the model, and a task that reads the letters sent to it. Workers push
// contributions and get answers; when, is the sync's decision (parallel/sync.h):
//
//   in rounds (bsp, quorum, a_bsp)  a round's contributions are added up; when enough have come it is concluded, and
//                                   everybody who has contributed gets the answer. Who comes too late for a round gets
//                                   the present answer; its contribution is dropped, and counted.
//   bounded (ssp, essp, delay)      contributions are merged as they come; a worker that asks for parameters gets them
//                                   as soon as all others' updates that it must have seen are in (essp: everybody gets
//                                   them then, without asking)
//   value                           the same, but what holds an answer back is how far the weights have moved
//   async                           contributions are merged as they come, and answered at once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "parallel/exchange.h"

namespace echelon::exchanges {

enum LetterKind : std::uint16_t {
  push,         // contribution; head.number: its share, second: the learning rate, as bits of a double
  push_answer,  // the same, and an answer is wanted
  pull,         // an answer is wanted that has seen `clock` steps of everybody
  answer,       // head.clock: how many steps of everybody it has seen
  flush,        // answered when everything that came before it has been merged
  flushed,
};

struct Key {  // a slice of the model: the unit of messages
  Range range;
  Rank server = 0;
};

class ServerShard {
 public:
  // `keys` are those of this rank; `first` is the number of the first of them among all.
  ServerShard(const ExchangeParts& parts, std::span<const Key> keys, std::size_t first);
  ~ServerShard();

  // While the task is idle (after `settle`):
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();
  std::int64_t dropped() const { return dropped_; }  // contributions that came too late
  double mean_staleness() const {
    return merged_ > 0 ? static_cast<double>(staleness_) / static_cast<double>(merged_) : 0;
  }
  void stop();  // the task ends

 private:
  struct Slice {
    Range range;
    std::unique_ptr<SharedSide> shared;
    std::unique_ptr<Codec> decoder, answer_codec;  // null: plain numbers
    Buffer sum;                                    // in rounds: of the round that is open
    double shares = 0;                             // that have come to it
    int came = 0;
    std::int64_t round = 0;
    std::int64_t version = 0;           // updates
    std::vector<std::int64_t> clocks;   // steps merged, by worker
    std::vector<std::int64_t> read_at;  // the version that each worker has read last
    std::vector<std::int64_t> wanted;   // steps that a worker's awaited answer must have seen; -1: it awaits none
    Buffer at_slowest;                  // sync value: the weights when the slowest worker's last update came
  };

  void run();
  void handle(const Letter& letter);
  void contribute(Slice& s, std::uint32_t key, const Letter& letter);
  void close_round(Slice& s, std::uint32_t key, double lr);
  void merge(Slice& s, const Letter& letter, double lr);
  void answer_those_who_may(Slice& s, std::uint32_t key);
  void answer(Slice& s, std::uint32_t key, Rank to, std::span<const std::byte> bytes);
  std::span<const std::byte> encoded_answer(Slice& s, std::uint32_t key);
  bool moved_too_far(const Slice& s, Rank reader) const;
  std::int64_t oldest(const Slice& s) const;
  double speed_of(Rank worker) const;

  ExchangeParts parts_;
  std::size_t first_;
  std::vector<Slice> slices_;
  Buffer contribution_, bytes_;
  std::int64_t dropped_ = 0, merged_ = 0, staleness_ = 0;
  std::vector<double> last_seen_, interval_;  // by worker: when its last contribution came, and the usual time between
  std::unique_ptr<Task> task_;                // last
};

}  // namespace echelon::exchanges
