#pragma once
// What the collaborators of one server have in common (shard.h): its keys with their shared sides, who writes to it,
// how fast these workers are, and what it counts. Its task alone uses it while it runs.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "parallel/server/keys.h"
#include "parallel/server/push_chain.h"

namespace echelon::exchanges {

struct ShardKey {
  std::uint32_t number = 0;
  Range range;
  std::unique_ptr<SharedSide> shared = {};
  std::unique_ptr<PushDecoder> decoder = {};
  std::unique_ptr<Codec> answer_codec = {};  // null: answers are plain numbers
  std::int64_t version = 0;                  // updates
  std::vector<std::int64_t> clocks = {};     // by worker: steps merged
  std::vector<std::int64_t> awaited = {};    // by worker: steps whose answer it awaits without a contribution
};

// Who writes to a server, and gets its answers.
class Writers {
 public:
  Writers(std::vector<Address> list, int workers);

  const std::vector<Address>& list() const { return list_; }
  std::size_t size() const { return list_.size(); }
  std::size_t index_of(Rank rank) const;  // in the list; its size: the rank is not there
  std::uint16_t reply_tag(Rank rank) const { return reply_tag_[static_cast<std::size_t>(rank)]; }

  // A worker that has left sends no contribution before all workers have met.
  void leaves(Rank rank) { gone_[static_cast<std::size_t>(rank)] = 1; }
  void comes(Rank rank) { gone_[static_cast<std::size_t>(rank)] = 0; }
  void all_come() { std::ranges::fill(gone_, 0); }
  bool is_gone(Rank rank) const { return gone_[static_cast<std::size_t>(rank)] != 0; }
  bool all_gone() const;
  std::size_t count_gone() const { return static_cast<std::size_t>(std::ranges::count(gone_, 1)); }
  const std::vector<Rank>& present();  // ranks that have not left; good until the next call

 private:
  std::vector<Address> list_;
  std::vector<std::uint16_t> reply_tag_;  // by rank
  std::vector<char> gone_;                // the same
  std::vector<Rank> present_;
};

// How fast workers compute: from when a worker got the answer that it had asked for, or else from its last push, until
// it pushes. An exponential mean.
class WorkerSpeeds {
 public:
  explicit WorkerSpeeds(int workers)
      : began_(static_cast<std::size_t>(workers), -1), interval_(static_cast<std::size_t>(workers)) {}
  void begins(Rank worker, double now) { began_[static_cast<std::size_t>(worker)] = now; }
  void leaves(Rank worker) { began_[static_cast<std::size_t>(worker)] = -1; }
  void pushes(Rank worker, double now);
  double of(Rank worker) const;  // relative to the mean; 1 if nothing is known
  std::vector<StateSpan> state() { return {as_state("server speeds", interval_)}; }

 private:
  std::vector<double> began_, interval_;  // by worker
};

struct ShardCore {
  const ExchangeParts& parts;
  std::vector<ShardKey> keys;  // side by side
  Writers writers;
  WorkerSpeeds speeds;
  ServerCounts counts;
  DecoderScratch scratch;
  double bandwidth;                // as ServerMap's
  std::function<void()> die = {};  // in an experiment, in place of forgetting all; may be empty

  std::uint32_t first() const { return keys.front().number; }
  bool has(std::uint32_t number) const { return number >= first() && number - first() < keys.size(); }
  ShardKey& key(std::uint32_t number) { return keys[number - first()]; }
  std::int64_t oldest(const ShardKey& key) const;  // steps of every writer that are merged
};

}  // namespace echelon::exchanges
