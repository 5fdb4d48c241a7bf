#pragma once
// Sync: when a worker waits, and for whom. A sync moves no data and knows no messages; it answers the questions that an
// exchange asks: a worker's ("do I ask for an answer with this push?"), a server's ("is the round complete?", "may this
// worker be answered now?") and those of who composes a system (traits, accepts).
//
// One class and one file each in parallel/syncs/; parallel/syncs.cpp lists the rows. An exchange never asks which sync
// it has, so a new one is a file and a row.
//
// A Sync is constant after it was made and may be used by all threads. An AnswerGate belongs to one key of one server,
// whose task alone uses it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/part.h"
#include "base/state.h"
#include "parallel/figures.h"
#include "world/world.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

// What a sync means for the other parts.
struct SyncTraits {
  bool in_rounds = false;       // contributions are merged together, a round at a time; else as they come
  bool lockstep = false;        // every worker is in every round, and waits for it
  bool never_waits = false;     // no worker waits for another one
  bool bounded = false;         // Sync::staleness bounds how old the parameters of a step may be
  bool per_worker = false;      // it depends on which worker a contribution is from: sums of several do not do
  bool leaves_out = false;      // takes or leaves a worker's gradient as a whole: some samples are not in the model
  bool hands_in_early = false;  // the first contribution to a round asks the other workers for what they have by then
  bool sends_unasked = false;   // fresh parameters go to all workers whenever the slowest has made a step
  bool answers_every_push = true;
  bool asks_when_stale = false;  // a worker asks for parameters only if the next step must not read its own copy
  bool varies_traffic = false;   // how much is sent depends on which workers are fast
};

// How the steps of a run are given out to workers that do not keep pace with each other.
struct WorkSharing {
  bool common = false;     // a worker that is ready takes the next piece of work; else each has its part of every batch
  double epoch_share = 1;  // an epoch ends when so much of it is done; slow workers leave the rest of their parts out
};

// What became of all workers' exchanges with servers since the start.
struct ServerCounts {
  double updates = 0;        // of the shared sides
  double contributions = 0;  // merged
  double staleness = 0;      // sum over contributions: updates by others since the worker had read the weights
  double dropped = 0;        // contributions that came too late for their round
  double lead = 0;           // the largest number of steps by which a contribution was ahead of the slowest worker
  double moved = 0;          // the largest AnswerGate::most_moved
  double site_lead = 0;      // the largest number of steps by which a site was ahead of the slowest, as far as it knew
  double site_barriers = 0;  // changes that one site has announced to another
  double least_speed = 1;    // of a worker, relative to the mean
  double waited = 0;         // seconds, by workers for servers
  double steps = 0;          // of all workers
  double done = 0;           // sum over steps: the share of its samples that the worker had computed
  double age = 0;            // sum over steps: how many steps of the slowest worker the parameters had not seen
  double out_of_order = 0;   // answers that came after one from the same server that is read later
  double keys = 1;           // into which the model is cut; updates, dropped and contributions are summed over them
};

// How far the writers of a key are, for an AnswerGate. By rank.
struct KeyProgress {
  std::span<const Rank> writers;        // that have not left
  std::span<const std::int64_t> steps;  // merged, of every rank
};

// What a sync remembers about one key at its server, to decide when a worker that has asked is answered.
class AnswerGate {
 public:
  virtual ~AnswerGate() = default;
  virtual bool may_answer(Rank reader, const KeyProgress& progress, std::span<const float> weights) = 0;
  virtual void was_answered(Rank reader, std::span<const float> weights) = 0;
  virtual double most_moved() const { return 0; }  // the farthest that weights were from what the slowest had read
  virtual std::vector<StateSpan> state() = 0;
};

class Sync {
 public:
  virtual ~Sync() = default;
  virtual SyncTraits traits() const = 0;

  // --- Asked by a worker ---
  // Does it ask for an answer with the push of this step? `fetch_due`: when.n_fetch says so.
  struct WorkerClock {
    std::int64_t clock = 0;  // steps that it has done before this one
    std::int64_t seen = 0;   // every worker's first so many steps are in its copy of the parameters
    bool fetch_due = true;
  };
  virtual bool asks(const WorkerClock& worker) const { return worker.fetch_due; }
  // For so many steps it goes on while an answer is on its way; 0: it waits for every answer that it asks for.
  virtual std::int64_t steps_without_answer() const { return 0; }

  // --- Asked by a server ---
  // Contributions with which a round of that many workers is complete.
  virtual int needed(int workers) const { return workers; }
  // Null: an answer depends only on `must_have_seen`. `weights`: at the beginning.
  virtual std::unique_ptr<AnswerGate> make_gate(int /*workers*/, std::span<const float> /*weights*/) const {
    return {};
  }
  // Steps by which a site's workers may be ahead of those of the slowest site; no value: any number.
  virtual std::optional<std::int64_t> most_site_lead() const { return {}; }

  // --- Asked by both ---
  // How many steps old the parameters of a step may be; no value: any number.
  virtual std::optional<std::int64_t> staleness() const { return {}; }
  // A worker that has done `clock` steps may begin the next one when every worker's first so many steps are in its
  // parameters.
  std::int64_t must_have_seen(std::int64_t clock) const {
    const std::optional<std::int64_t> bound = staleness();
    return bound ? clock - *bound : 0;
  }

  // --- Asked by who composes and reports ---
  virtual WorkSharing work() const { return {}; }
  // Adds one problem for each reason why it cannot work in that composition, with the nearest one that can.
  virtual void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;
  // What is worth knowing about a run with this sync.
  virtual std::vector<Figure> figures(const ServerCounts& counts) const;
};

using SyncMaker = std::unique_ptr<const Sync> (*)(OptionReader&);
using SyncPart = Part<SyncMaker>;

// The sync that a recipe's [sync] table asks for; bsp if it names none. Problems are added to the reader's; calls its
// `done`.
std::unique_ptr<const Sync> read_sync(OptionReader& options);
const std::vector<SyncPart>& sync_parts();

}  // namespace echelon
