#pragma once
// What trains a model, as a run sees it (run/training/training.h). There are two kinds: exact synchronous training, of
// a whole or a split model (parallel/planned/), and replicas of a composed system (parallel/replica.h). Both run until
// some step and report progress on the way; between two calls of run() all ranks are at the same step, and the model
// can be read, evaluated and saved.
//
// One thread of each rank drives its engine. Functions that say "collective" are called by all ranks in the same order.

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/state.h"
#include "data/loader.h"
#include "models/model.h"
#include "optim/optim.h"
#include "parallel/figures.h"
#include "parallel/step/bit_flip.h"
#include "parallel/step/compute_hooks.h"
#include "parallel/step/step_result.h"
#include "parallel/team/byzantine.h"
#include "parallel/team/straggler.h"
#include "parallel/team/team.h"

namespace echelon {

struct Composition;
class MessageOrder;
struct PlanSpec;

struct EngineSettings {
  const models::Model* model = nullptr;
  std::function<Optim()> make_optim;
  std::vector<data::Field> fields;  // the data set's
  int shards = 1;                   // of a batch; of each worker's part of it, for replicas
  std::uint64_t seed = 1;
  std::int64_t largest_shard = 1;          // samples of a shard
  std::vector<Straggler> stragglers = {};  // experiments
  Byzantine byzantine = {};                // the same; of replicas
  std::vector<BitFlip> flips = {};         // of gradients, where ranks share no memory
  // Called once, on the random numbers that every weight begins with: writes others over them. May be empty.
  std::function<void(const ParameterTable& table, std::span<float> parameters)> start = {};
  // Where the pieces of exact training run: legal, and for these workers. Null: every rank has the whole model.
  const PlanSpec* plan = nullptr;
  std::string folder = "/tmp";  // for memory that lies in files, where the plan names none
};

struct StepProgress {
  std::int64_t step = 0;  // steps of the run that are done
  StepResult result;      // of the steps since the last report
  double bytes = -1;      // sent by all ranks so far; -1: not counted
};

// The steps [from, to), and what an engine needs to know of the run to do them.
struct StepRange {
  std::int64_t from = 0, to = 0;
  // Samples after which it may end where workers go at their own pace: the slower ones leave out the rest of their
  // parts.
  std::int64_t enough = std::numeric_limits<std::int64_t>::max();
  data::Loader* loader = nullptr;
  std::function<double(std::int64_t step)> lr, epoch;
  std::function<bool()> asks_to_stop;
  // After steps: on rank 0 in any case, on the others where ranks are in lock-step.
  std::function<void(const StepProgress&)> on_progress;
  std::function<void(const Span&)> on_span = {};  // for traces; may be empty
};

// Weights in the memory of a rank that others hold too: the whole model, or a part of a stage of a split one.
struct HeldWeights {
  int stage = -1, part = 0;  // -1: the whole model
  std::span<const float> values;
};

struct Reached {
  std::int64_t step = 0;  // `to`, or less if some rank asked to stop
  bool stop = false;      // some rank asked to
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Reached run(const StepRange& range) = 0;  // collective

  virtual const ParameterTable& table() const = 0;
  virtual std::span<float> model() = 0;  // the weights that are evaluated and saved, as of the last read_model()
  virtual void read_model() {}           // collective; after run()
  // The last step's gradient, in the places of table(): the sum or the mean over the batch, before the update's limits.
  // Empty where no rank has all of it.
  virtual std::span<const float> gradient() { return {}; }
  // What this rank's own shards came to in the last step, before the sum over ranks. Empty where it is not kept.
  virtual std::vector<std::span<const float>> contributions() { return {}; }
  virtual bool model_is_everywhere() const { return true; }  // else model() is empty on all ranks but the first
  // What must be the same bits on all ranks that have it, as of the last read_model().
  virtual std::vector<HeldWeights> held_weights() {
    if (!model_is_everywhere()) return {};
    return {{.values = model()}};
  }

  // All that a checkpoint must hold besides the model, by name. To save: gather() on all ranks, then rank 0 reads
  // model() and state(), then end_gather() on all ranks. To load: rank 0 fills in model() and state(), then scatter()
  // on all.
  virtual std::vector<StateSpan> state() = 0;
  virtual void gather() = 0;    // collective
  virtual void end_gather() {}  // collective
  virtual void scatter() = 0;   // collective

  // Which samples of which batches this rank reads: changes the run's options accordingly.
  virtual void adapt(data::LoaderOptions& options) const = 0;
  // The order in which it takes messages, if that decides about the weights, is noted there, and repeated
  // (world/mailbox/message_order.h). False: it takes none, and what it does follows from its state alone.
  virtual bool follow(MessageOrder& /*order*/) { return false; }
  virtual double epoch_share() const { return 1; }  // of its samples with which an epoch may end
  virtual int working_ranks() const = 0;            // that have samples to train on
  virtual double flops_per_sample() = 0;            // of a training step
  virtual void watch(Watch watch) = 0;              // tells it of every operation from now on

  virtual RankTimes times() const = 0;                  // of this rank's steps
  virtual double bytes_sent() = 0;                      // by all ranks in their steps; -1: not counted. Collective
  virtual std::vector<Figure> figures() { return {}; }  // of the exchanges. Collective
  // After the last step: returns when all ranks are here. Throws PeerLost or TooLate if one does not come. Collective.
  virtual void close() {}
};

// The ranks split every batch; the weights are the same bits for any number of them (parallel/step/trainer.h).
std::unique_ptr<Engine> make_exact_engine(const EngineSettings& settings, Team& team);

// The engine for a run with `settings.shards` shards in a batch of at most that many samples, which sets largest_shard.
// `composition` may be null: exact training, as with one rank. All must outlive the engine.
std::unique_ptr<Engine> make_engine(EngineSettings settings, std::uint64_t largest_batch,
                                    const Composition* composition, Team& team);

}  // namespace echelon
