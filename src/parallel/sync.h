#pragma once
// When a worker waits, and for whom: values. What a kind of waiting means is in the exchanges that can do it, above all
// the server's (exchanges/server_client.cpp, server_shard_rounds.cpp, server_shard.cpp).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/part.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

// What a sync means for the other parts.
struct SyncTraits {
  bool in_rounds = false;       // contributions are merged together, a round at a time; else as they come
  bool lockstep = false;        // every worker is in every round, and waits for it
  bool never_waits = false;     // no worker waits for another one
  bool bounded = false;         // how old the parameters of a step may be is bounded
  bool per_worker = false;      // it depends on which worker a contribution is from: sums of several do not do
  bool leaves_out = false;      // takes or leaves a worker's gradient as a whole: some samples are not in the model
  bool hands_in_early = false;  // the first contribution to a round asks the other workers for what they have by then
  bool answers_every_push = true;
};

struct Sync {
  enum class Kind {
    bsp,          // every round has every worker
    quorum,       // a round closes with the first workers - backups; late contributions are dropped
    a_bsp,        // when the fastest worker has finished, the others hand in what they have by then
    ssp,          // a worker leads the slowest by at most `staleness` clocks
    essp,         // the same, and fresh parameters are sent before they are asked for
    delay,        // every step reads afresh, as soon as all steps that are `staleness` older are merged
    value,        // a worker waits while the shared weights have moved by more than `bound` since the slowest read them
    soft,         // rounds that nobody waits for, unless the last answer is `staleness` steps late
    approximate,  // sites exchange only changes above `threshold`, relative to the weight, which shrinks
    async,        // nobody waits
  };
  Kind kind = Kind::bsp;
  std::int64_t staleness = 3;
  int backups = 1;
  double bound = 0.1;
  double threshold = 0.01;
  int sites = 0;  // groups of workers with servers of their own; 0: the hosts
  // Whether workers take the next piece of work from a common heap (a slow one then does less), or each has its own
  // part of every batch.
  bool common_work = false;
  // Of an epoch's samples: when so many are done it is over, and who is behind leaves the rest of its own parts out.
  double epoch_share = 1;

  SyncTraits traits() const {
    return {.in_rounds = in_rounds(),
            .lockstep = kind == Kind::bsp,
            .never_waits = kind == Kind::async,
            .bounded = bounded(),
            .per_worker = kind != Kind::bsp && kind != Kind::async && kind != Kind::soft,
            .leaves_out = kind == Kind::quorum || kind == Kind::a_bsp,
            .hands_in_early = kind == Kind::a_bsp,
            .answers_every_push = kind != Kind::ssp && kind != Kind::essp && kind != Kind::soft};
  }
  bool in_rounds() const {
    return kind == Kind::bsp || kind == Kind::quorum || kind == Kind::a_bsp || kind == Kind::soft;
  }
  bool bounded() const { return kind == Kind::ssp || kind == Kind::essp || kind == Kind::delay; }

  // Adds one problem for each reason why this sync cannot be a part of that composition, with a cure.
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;
};

Sync read_sync(OptionReader& options);  // [sync]; calls `done`
const char* to_text(Sync::Kind kind);
std::vector<PartInfo> sync_parts();

// Contributions that close a round of that many workers.
int needed(const Sync& sync, int workers);
// A worker that has done `clock` steps may begin the next when the shared side holds all updates of all workers' first
// so many steps.
std::int64_t must_have_seen(const Sync& sync, std::int64_t clock);

}  // namespace echelon
