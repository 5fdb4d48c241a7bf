#pragma once
// The mathematics of a system: what a worker contributes, how contributions are merged, and what a worker makes of the
// answer. No messages, no waiting (parallel/exchange.h), no encoding (codec/). A rule has two sides:
//
//   WorkerSide   at every replica: contributes from its gradient or weights, applies the answer
//   SharedSide   where contributions meet, for a range of elements: at a server, at the owner of a part of the model,
//                or at every worker alike when a collective has summed them
//
// or, between equals (gossip), a PeerSide, which gives and takes. A new rule is a file in parallel/rules/ and a line in
// the table of parallel/rules.cpp (docs/adding-a-system.md).
//
// Contributions of gradients leave running statistics (batch norm) out: those stay with their replica and are averaged
// when the model is read.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/part.h"
#include "base/random.h"
#include "base/state.h"
#include "collective/topology.h"
#include "optim/optim.h"
#include "tensor/buffer.h"
#include "world/world.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

struct RuleTraits {
  enum class Quantity {
    gradient,  // between backward and update
    weights,   // after the update
  };
  enum class Model {  // what is evaluated and saved
    own,              // any replica: they are all the same
    shared,           // what the shared sides hold
    mean,             // the mean of the replicas
  };
  Quantity quantity = Quantity::gradient;
  Model model = Model::own;
  bool local_step = true;        // the worker's own optimizer moves its weights
  bool sums = false;             // contributions can be added up first: SharedSide::conclude
  bool one_by_one = false;       // or merged as they come: SharedSide::absorb
  bool sees_each = false;        // or by themselves, all of a round at once: EachSide
  bool compares_each = false;    // the same, and it needs inner products between whole contributions
  bool peers = false;            // give and take between equals: PeerSide
  bool changes = true;           // contributions are changes, fit for any codec; false: weights
  bool answers_changes = true;   // the same of answers
  bool gradient_itself = false;  // contributions are gradients as they are: their sum may be had in another way
  bool adds = false;             // merging is adding to the weights, which anybody may do where they lie
  bool movable = false;          // SharedSide::movable
  bool decoupled = false;        // workers go on while their contributions and answers travel: sync soft
  bool by_clock = false;         // how fast workers are decides what a contribution counts
  bool answers_mean = false;     // the answer is the mean itself: where a collective makes it, no shared side is needed
};

// A replica as its rule sees it. Flat buffers of the whole model.
struct ReplicaView {
  std::span<float> weights, gradient;
  const std::vector<TrainedSpan>* segments = nullptr;
  Rank rank = 0;
  int workers = 1;
};

// Where a contribution comes from.
struct PushInfo {
  Rank from = 0;
  std::int64_t clock = 0;  // the worker's step
  double staleness = 0;    // updates of the shared side since the worker has read it; the mean over the contributions
  std::int64_t contributions = 1;  // that are in this one, if some were added up on the way: their mean
  double lr = 0;                   // the schedule's, times the share of the global batch that the worker's samples were
  double share = 1;                // of the global batch that the worker's samples were, for rules of weights
  double speed = 1;                // of the worker's computing, relative to the mean of all
};

class WorkerSide {
 public:
  virtual ~WorkerSide() = default;
  // out[i] = share * the contribution of element range.begin + i. With Quantity::weights the share is 1.
  virtual void contribute(Range range, double share, std::span<float> out) = 0;
  virtual void apply(Range range, std::span<const float> answer) = 0;
  // Rules of Quantity::weights: the gradient is there, the worker's own optimizer comes next. May add to the gradient.
  virtual void on_gradient() {}
  virtual std::vector<StateSpan> state() { return {}; }
};

class SharedSide {
 public:
  virtual ~SharedSide() = default;
  // All contributions of a round: their sum, divided by the sum of their shares. May be overwritten. `lr`: the
  // schedule's.
  virtual void conclude(std::span<float> mean, double lr) = 0;
  // One contribution. The answer to it is `answer` afterwards.
  virtual void absorb(std::span<const float> in, const PushInfo& push);
  // The last contribution is kept until others have come: there was no update.
  virtual bool waits_for_more() const { return false; }
  // Begins anew from the present answer: what the past has left behind (a momentum) is forgotten.
  virtual void restart() {}
  virtual std::span<const float> answer() const = 0;
  virtual void was_read(Rank /*reader*/) {}  // that worker is being sent the answer
  // The model's weights in this range, if the shared sides hold the model.
  virtual std::span<const float> model() const { return answer(); }
  // The model's weights, for exchanges that move them by something else than contributions; empty: they cannot.
  virtual std::span<float> movable() { return {}; }
  virtual std::vector<StateSpan> state() = 0;
};

// Where all contributions of a round are at hand, one beside the other, for a range of elements. All that such rules
// have to know of whole contributions are inner products between them: each place computes those of its range, and is
// told those of all.
class EachSide {
 public:
  virtual ~EachSide() = default;
  // RuleTraits::compares_each: products[i * n + j] of what the workers i and j are compared by.
  virtual void compare(std::span<const std::span<const float>> each, std::span<double> products);
  // `products`: over all ranges.
  virtual void merge(std::span<const std::span<const float>> each, std::span<const double> products,
                     std::span<float> out) = 0;
  virtual std::vector<StateSpan> state() { return {}; }
};

// Between equals a replica gives its weights away, with a number that says how much they count; what it is given it
// merges with its own. The exchange decides who gives to whom, and when.
class PeerSide {
 public:
  virtual ~PeerSide() = default;
  // The number that goes with this replica's weights to each of `peers` others at once. `clock`: steps it has done.
  virtual double give(int peers, std::int64_t clock) = 0;
  struct Gift {
    double weight = 1;       // the number that came with it
    double mix = 0.5;        // the part of the merger that the graph gives to it: all that came alike, or by its matrix
    std::int64_t clock = 0;  // steps that the receiver has done
    std::int64_t sent_at = 0;  // steps that the sender had done
  };
  // `mine` becomes the merger of itself and `in`.
  virtual void take(std::span<float> mine, std::span<const float> in, const Gift& gift) = 0;
  virtual void gathered(std::span<float> /*mine*/) {}  // all that had come was taken, perhaps nothing
  virtual double weight() const { return 1; }          // of this replica in the mean of all
  virtual std::vector<StateSpan> state() { return {}; }
};

class MergeRule {
 public:
  virtual ~MergeRule() = default;
  virtual RuleTraits traits() const = 0;
  // Adds one problem for each reason why this rule cannot be a part of that composition, with a cure.
  virtual void accepts(const Composition&, const CompositionFacts&, Problems&) const {}
  // Views and what they point to outlive the sides.
  virtual std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const;
  // `start`: the weights of the range at the beginning; `segments` are those of the range, counted from its begin.
  struct Place {
    std::span<const float> start;
    std::vector<TrainedSpan> segments;
    int workers = 1;
    std::function<Optim()> make_optim;
  };
  virtual std::unique_ptr<SharedSide> make_shared(const Place& place) const;
  virtual std::unique_ptr<EachSide> make_each(std::size_t floats, int workers) const;
  // The update rule that takes the place of the recipe's, at workers too; empty: none does.
  virtual std::function<Optim()> own_optim() const { return {}; }
  virtual std::unique_ptr<PeerSide> make_peer(const ReplicaView& view) const;
};

// The rule that a recipe's [rule] table asks for. Problems are added to the reader's; calls its `done`. Without a name:
// grad_mean.
std::unique_ptr<const MergeRule> read_rule(OptionReader& options);

using RulePart = Part<std::unique_ptr<const MergeRule> (*)(OptionReader&)>;
const std::vector<RulePart>& rule_parts();

}  // namespace echelon
