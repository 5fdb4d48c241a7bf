#pragma once
// With whom a worker exchanges, and over which messages. An exchange carries a rule's contributions (parallel/rule.h)
// in a codec's bytes (codec/codec.h), waits as the sync says (parallel/sync.h) and sends in the given order; it knows
// nothing of what they mean. One file each in parallel/exchanges/, and one line in the table of parallel/exchanges.cpp
// (docs/adding-a-system.md).
//
// All ranks make theirs together, and call `drain`, `read_model` together. The worker's thread calls everything.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "parallel/figures.h"
#include "parallel/order.h"
#include "parallel/rule.h"
#include "parallel/step/replica_trainer.h"
#include "parallel/sum/auto_sum.h"
#include "parallel/sync.h"
#include "parallel/team/team.h"
#include "parallel/when.h"
#include "world/mailbox/mailbox.h"
#include "world/os/cores.h"

namespace echelon {

// All that an exchange is made of. Everything outlives it.
struct ExchangeParts {
  World* world = nullptr;
  Team* team = nullptr;        // of all ranks
  Mailbox* mailbox = nullptr;  // null for exchanges in lock-step
  ReplicaTrainer* trainer = nullptr;
  const MergeRule* rule = nullptr;
  CodecMaker codec;
  std::vector<NamedCodec> codec_choice;  // codec auto: takes what is quickest of these
  const Sync* sync = nullptr;
  When when;
  Order order;
  std::function<Optim()> make_optim;
  std::uint64_t seed = 0;
  std::size_t batch = 1;           // samples of a global batch, all but the last of an epoch
  std::vector<Rank> members = {};  // that contribute, in ascending order; empty: all
  // Another trainer of the same model, on those cores. Empty where replicas are split.
  std::function<std::unique_ptr<ReplicaTrainer>(Cores& cores)> make_trainer = {};

  Rank rank() const { return world->rank(); }
  int workers() const { return world->size(); }
  std::size_t floats() const { return trainer->parameters().size(); }
  ReplicaView view() const;
  MergeRule::Place place(Range range) const;                                       // for the shared side of a range
  std::vector<CodecPiece> pieces(Range range) const;                               // for its codec
  Stream random(const char* purpose, std::int64_t step) const;                     // this rank's, at that step
  Stream random(const char* purpose, std::int64_t step, std::uint32_t key) const;  // and for that key of the model
};

// What a range of a model's parameters consists of: parameters and the gaps between them, in order.
std::vector<CodecPiece> pieces_of(const ParameterTable& table, Range range);

// A worker's step, as exchanges see it.
struct StepInfo {
  std::int64_t step = 0;   // of the run: what the schedule knows
  std::int64_t clock = 0;  // steps that this worker has done before
  double lr = 0;
  double share = 1;  // of the step's global batch that this worker's samples were
  double epoch = 0;
  std::uint64_t batch = 1;    // samples of the global batch
  std::uint64_t samples = 0;  // of it that are this worker's
  bool due = true;            // [when] says that `exchange` is called in this step
  double done = 1;            // of its part of the batch; less if it had to hand in early
};

struct StepInput {
  StepInfo info;
  const data::Batch* batch = nullptr;
};

class Exchange {
 public:
  // The messages' tags.
  static constexpr int server_tag = 0, worker_tag = 1;

  virtual ~Exchange() = default;
  virtual void begin_round() {}                 // collective; steps follow, and `drain` ends it
  virtual void before_step(const StepInfo&) {}  // may wait, may change the weights
  // The gradient is complete (rules of gradients), or the weights have been updated. Only after the steps that [when]
  // names. Returns with how much of the learning rate the worker's own optimizer shall move its weights now; 0: not at
  // all (a gradient rule's question only).
  virtual double exchange(const StepInfo& info) = 0;
  virtual void after_step(const StepInfo&) {}
  // How many of the coming steps the worker makes side by side. If there are several, this makes them in place of the
  // worker's trainer, and exchanges after the last if that is due. `next` is asked for each in turn; its batch is good
  // until then.
  virtual std::int64_t steps_side_by_side() const { return 1; }
  virtual StepResult make_steps(std::int64_t /*count*/, const std::function<StepInput(std::int64_t)>& /*next*/) {
    return {};
  }
  virtual void on_gradient() {}  // as WorkerSide's
  // Asked while a gradient is computed, between logical shards (SyncTraits::hands_in_early): false hands in what there
  // is.
  virtual bool keep_going() { return true; }
  // After `exchange`: further steps that the others have closed without this worker, which it leaves out.
  virtual std::int64_t missed_steps() { return 0; }
  // This worker makes no further step in this round; others may still be at theirs.
  virtual void leave() {}
  // The end of a round of steps: afterwards nothing is on its way, and all ranks are here.
  virtual void drain() = 0;
  // After `drain`: the shared sides' model, for rules whose model is there.
  virtual void read_model(std::span<float> /*out*/) {}
  // How many steps lie between exchanges now, if the recipe says tau: an exchange may know better. The same for all.
  virtual std::int64_t period(std::int64_t tau) const { return tau; }
  virtual double peer_weight() const { return 1; }  // of this replica in the mean of all
  virtual std::vector<StateSpan> state() = 0;
  // What became of all workers' exchanges since the start, by name, for people and tests. After `drain`; collective.
  virtual std::vector<Figure> figures() { return {}; }
};

// What an exchange demands of the others, for refusing what makes no sense (parallel/composition.h).
struct ExchangeTraits {
  bool in_lockstep = true;       // all workers call it at the same steps; no messages
  bool sums = false;             // adds contributions up: needs a rule that can take sums
  bool keeps_apart = false;      // contributions stay by themselves: needs a rule that sees each
  bool peers = false;            // needs a rule between equals
  bool either_pace = false;      // in lock-step with sync bsp, by messages with sync async
  bool adds_what_comes = false;  // every worker adds contributions to its own as they come; no worker waits for them
  bool replicas_differ = false;  // whatever the rule: the model is their mean
  bool shared_memory = false;    // workers write into one memory
  bool plain_numbers = false;    // knows no codec
  bool chooses_codec = false;    // knows codec auto
  bool sends_early = false;      // can send buckets of a gradient while backward runs
  bool orders_slices = false;    // can send slices in any order
  bool merges_steps = false;     // knows when.n_push, n_fetch and warm_start
  bool two_periods = false;      // knows when.tau_down
  bool sums_on_the_way = false;  // contributions are added up before they come to where they are merged
  bool no_own_gradient = false;  // a worker has only factors of it, and takes its steps from answers
  bool cores_race = false;       // the cores of a worker move its weights while they compute (ComputeSettings::race)
  bool sites = false;            // can have servers in every site
  bool works_alone = false;      // is something of its own with a single worker too
  bool by_clock = false;         // when something happens, or how fast, decides what it does
  bool coordinates = false;      // an engine of its own does it: a coordinator hands out pieces of the batch
};

class ExchangeKind {
 public:
  virtual ~ExchangeKind() = default;
  virtual ExchangeTraits traits() const = 0;
  // Adds one problem for each reason why this exchange cannot be a part of that composition, with a cure. Here: what
  // follows from its traits, `problem` and `problem_within`; an exchange adds what only it knows.
  virtual void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;
  virtual bool is_exact() const { return false; }  // sums in the one fixed tree
  // Bytes in which a worker computes, if they are bounded: the rest lies in files there, and is fetched when it is
  // used.
  struct FastMemory {
    std::size_t bytes = 0;  // 0: as many as it needs
    std::string folder;
  };
  virtual FastMemory fast_memory() const { return {}; }
  virtual std::unique_ptr<Exchange> make(ExchangeParts parts) const = 0;
  // How many steps lie between exchanges at the beginning, if the recipe says tau.
  virtual std::int64_t steps_between(std::int64_t tau) const { return tau; }
  // What all workers together send for one exchange, as `echelon systems show` prints it and the simulation checks it.
  struct Traffic {
    double messages = 0, bytes = 0;
    bool at_most = false;  // it depends on which workers are fast
    friend Traffic operator+(Traffic a, Traffic b) {
      return {a.messages + b.messages, a.bytes + b.bytes, a.at_most || b.at_most};
    }
    friend Traffic operator*(double times, Traffic t) { return {times * t.messages, times * t.bytes, t.at_most}; }
  };
  struct TrafficQuery {
    int workers = 1;
    std::size_t floats = 0;                     // of the whole model
    std::vector<Range> buckets = {};            // in which a gradient becomes complete; empty: in one
    std::function<double(Range)> encoded = {};  // bytes of a range by the codec; empty: no codec
    Codec::Traits codec = {};
    std::function<Codec::Rounds(Range)> coded_rounds = {};  // of a range by the codec; empty: no codec
    bool sizes_vary = true;                                 // whether the codec's bytes depend on the numbers
    bool most = false;                                      // the most that can be, where bytes depend on the numbers
    bool codes_answers = false;                             // whether answers are encoded too
    const Sync* sync = nullptr;
    Order order = {};
    RuleTraits rule = {};
    std::size_t batch = 1;                   // samples of the global batch
    std::vector<ThinProduct> products = {};  // of the model
    std::vector<Rank> members = {};          // as in ExchangeParts
    When when = {};
    std::vector<std::size_t> tensors = {};  // where each begins among the floats
    Codec::Rounds rounds(Range r) const { return coded_rounds ? coded_rounds(r) : Codec::Rounds{}; }
    std::function<double(Range)> usually = {};  // as `encoded`, usually
    double usual_bytes(Range r) const { return usually ? usually(r) : bytes(r); }
    double bytes(Range r) const { return encoded ? encoded(r) : 4.0 * static_cast<double>(r.count()); }
    double answer_bytes(Range r) const { return codes_answers ? bytes(r) : 4.0 * static_cast<double>(r.count()); }
  };
  virtual Traffic traffic(const TrafficQuery& c) const = 0;
  virtual std::string traffic_text() const = 0;  // the same as a formula, with n workers and W bytes of the model
  virtual std::string messages_text() const { return {}; }  // and the messages
  // Both, where they depend on settings, codec and workers.
  struct TrafficTexts {
    std::string bytes, messages;
  };
  virtual TrafficTexts traffic_texts(const TrafficQuery&) const { return {traffic_text(), messages_text()}; }
  // How well a run keeps to it: to the number; in the mean over many exchanges; or never sending more.
  enum class Exactness { exact, mean, most };
  virtual Exactness traffic_exactness() const { return Exactness::exact; }
  // Why it does not go with that many workers or that composition, and what would; empty: it does.
  virtual std::string problem(int /*workers*/, bool /*has_codec*/) const { return {}; }
  // The same about a run in which nothing that is shared is updated more often than that.
  virtual std::string problem_within(std::int64_t /*updates*/) const { return {}; }
};

// The kind that a recipe's [exchange] table asks for. Calls `done`.
std::unique_ptr<const ExchangeKind> read_exchange(OptionReader& options);

using ExchangePart = Part<std::unique_ptr<const ExchangeKind> (*)(OptionReader&)>;
const std::vector<ExchangePart>& exchange_parts();

}  // namespace echelon
