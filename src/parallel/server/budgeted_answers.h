#pragma once
// Which fresh parameters a server sends unasked when its share of the link has no room for all (Bösen): those that have
// changed most, relative to their size, since that worker was sent them. What a worker must have it asks for
// (Pusher::ask_for_old), so nothing waits for room for ever. Belongs to a merger, whose task uses it.

#include <functional>
#include <vector>

#include "parallel/server/budget.h"
#include "parallel/server/shard_core.h"

namespace echelon::exchanges {

class BudgetedAnswers {
 public:
  explicit BudgetedAnswers(ShardCore& core);

  void before_update(const ShardKey& key);
  void after_update(const ShardKey& key);
  // Calls `send` for what there is room for now, what matters most first; `send` says so to `sent`.
  void for_each_that_goes(const std::function<void(ShardKey&, Rank)>& send);
  void sent(const ShardKey& key, Rank to);  // asked or unasked
  void pause() { room_.stop(); }            // workers leave: the round of steps is about to end
  std::vector<StateSpan> state();

 private:
  struct KeyChange {
    double moved = 0;                // all that its updates have changed, relative to its size
    std::vector<double> sent_moved;  // by worker: of that, when it was sent
    std::vector<std::int64_t> sent_clock;
  };
  struct Candidate {
    double significance;
    ShardKey* key;
    Rank to;
  };
  KeyChange& change(const ShardKey& key) { return changes_[key.number - core_.first()]; }
  double bytes_of(const ShardKey& key) const;

  ShardCore& core_;
  std::vector<KeyChange> changes_;  // by key
  Buffer before_;                   // the weights of the key that is updated
  ByteBudget room_;
  std::vector<Candidate> candidates_;
};

}  // namespace echelon::exchanges
