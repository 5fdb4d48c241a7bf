#pragma once
// How a server merges the contributions to its keys and decides whom it answers when: a round at a time
// (round_merger.cpp) or as they come (arrival_merger.cpp). Which of the two, and all decisions in them, are the sync's
// (parallel/sync.h). Belongs to a ServerShard, whose task uses it.

#include <memory>
#include <vector>

#include "parallel/server/answers.h"

namespace echelon::exchanges {

class Merger {
 public:
  virtual ~Merger() = default;
  // A push, or a message that asks for an answer. `seen`: its contribution is merged already, but its sender needs the
  // answer. Failure for types that it does not know.
  virtual void take(ShardKey& key, Message& message, bool seen) = 0;
  // A worker has left, or another site has come nearer: others may have waited for that.
  virtual void check_waiting() = 0;
  virtual double most_moved() const { return 0; }  // AnswerGate::most_moved
  // For whom the workers wait that want an answer about that key; -1: the slowest.
  virtual Rank latecomer(const ShardKey&) const { return -1; }
  virtual std::vector<StateSpan> state() = 0;
};

// Everything outlives them. `order`: of the keys, in which they are answered in every round; empty: as their rounds are
// complete.
struct MergerParts {
  ShardCore& core;
  ShardReplication& replication;
  AnswerSender& answers;
};
std::unique_ptr<Merger> make_round_merger(const MergerParts& parts, std::vector<std::size_t> order);
std::unique_ptr<Merger> make_arrival_merger(const MergerParts& parts);

}  // namespace echelon::exchanges
