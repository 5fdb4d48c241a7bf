#pragma once
// One training run from its first step (or from where a checkpoint left off) to its end: steps, evaluations,
// checkpoints, early stopping. Everything that happens when is a pure function of the step, and everything that is
// remembered is in the checkpoint: a run that was stopped at any step and resumed ends with the same bits.

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "models/model.h"
#include "optim/schedule.h"
#include "parallel/composition.h"
#include "parallel/engine.h"
#include "parallel/metrics/metric.h"
#include "plan/spec.h"
#include "run/events.h"
#include "run/health/replica_check.h"
#include "run/summary.h"
#include "run/training/initial_weights.h"
#include "run/training/state_keeper.h"
#include "track/checkpointer.h"
#include "track/control.h"
#include "track/journal.h"
#include "world/os/clock.h"
#include "world/os/disk.h"
#include "world/os/file_memory.h"

namespace echelon {

// A model at the moment of an evaluation, for metrics that the calling program computes.
struct EvaluatedModel {
  const models::Model& model;
  const ParameterTable& table;
  std::span<float> weights;  // only to be read
  const data::DatasetPtr& data;
  Cores& cores;
};

// All that a run needs to know, built and checked before it starts.
struct TrainingJob {
  const models::Model* model = nullptr;
  // train is shuffled already where it should be. Evaluations look at `validation`, and at `test` once at the end; at
  // `test` if there is no `validation`. Both may be null.
  data::DatasetPtr train, validation = {}, test = {};
  std::vector<Metric> metrics = {};    // that evaluations report
  std::optional<Metric> monitor = {};  // decides which is the best; none: accuracy, or the loss if there is none
  std::function<Optim()> make_optim;
  Schedule schedule;
  std::vector<data::BatchPhase> batches;
  data::PartitionSpec partition = {};  // whether workers keep their samples
  bool drop_partial = false;
  int shards = 1;
  std::uint64_t seed = 1;
  std::int64_t total_steps = 0;
  Duration eval_every, checkpoint_every;  // an amount of 0: at the end only
  std::optional<double> target_accuracy, target_loss;
  std::int64_t patience = 0;                // evaluations without a better one; 0: no limit
  std::optional<PlateauSpec> plateau = {};  // lowers the schedule's rate where evaluations do not get better
  std::string model_fingerprint, data_fingerprint, recipe_fingerprint;
  std::shared_ptr<const Composition> composition = nullptr;  // null: exact synchronous training
  std::vector<Straggler> stragglers = {};                    // experiments
  Byzantine byzantine = {};                                  // the same
  std::vector<BitFlip> flips = {};                           // the same
  std::shared_ptr<const InitialWeights> initial = nullptr;   // null: random numbers, or a checkpoint will be loaded
  PlanSpec plan = {};                                        // of exact training: legal, and for these workers
  // Metrics of the calling program: asked on rank 0 after each evaluation; reported with the others, and not monitored.
  std::function<MetricValues(const EvaluatedModel&)> own_metrics = {};
};

// Fills in the weights that the run begins with; empty if they are all random numbers.
std::function<void(const ParameterTable&, std::span<float>)> start_of(const TrainingJob& job);

// Whether such a run keeps its state after every step (run/training/state_keeper.h): all ranks have the whole model,
// and do their steps together.
bool keeps_each_step(const TrainingJob& job, int workers);

class AllCheckpointsDamaged : public Failure {
  using Failure::Failure;
};

class Training {
 public:
  // Set to true from outside, it makes the run save and stop at the next step's end.
  using StopFlag = std::atomic<bool>;

  // `job`, `disk`, `clock` and `team` must outlive the training. `checkpoints`: the directory; empty: none are kept.
  // Of several ranks all make one and call the same functions; rank 0 alone uses the disk.
  // A composition needs a world that counts what it sends (world/wrappers/metered.h).
  Training(const TrainingJob& job, Disk& disk, Clock& clock, Team& team, std::string checkpoints, int keep);
  ~Training();

  void add(RunListener& listener) { listeners_.push_back(&listener); }
  // Called at each save; returns what has to be on disk before the checkpoint. The save waits for it in the background.
  void save_after(std::function<std::shared_future<void>()> first) { before_save_ = std::move(first); }
  // Does what others ask of the run while it goes on. All ranks call it or none; rank 0 alone has a reader.
  void follow(ControlReader* reader) { followed_ = true, control_ = reader; }
  // After follow(): changes what another run has changed, at the same steps. All ranks are given the same lines.
  void replay(std::vector<JournalLine> lines) { replayed_ = std::move(lines); }
  // Goes on from the newest checkpoint that verifies; false if there is none. BadInput if it belongs to another
  // training (track/manifest.h), AllCheckpointsDamaged if there are some and none verifies. Tells which newer ones were
  // skipped.
  enum class AllDamaged { refuse, restart };
  bool resume(AllDamaged if_so = AllDamaged::refuse);
  // From now on the state is kept in memory that outlives the ranks; all of them call it, before run().
  void keep_in(KeptState& kept, const KeepingRanks& ranks, Keep how = Keep::usual);
  // After keep_in(), in exact training on a team without common memory: the ranks check each other. What they do not
  // agree on is neither kept nor saved: the run asks its launcher to begin again with what was kept. Collective.
  void check_replicas(const ReplicaCheckOptions& options);
  void resume_kept();  // after keep_in(): goes on from the state that is kept there. Collective
  // The same, but with the weights that the job begins with: the state is that of another system, or of another
  // number of its workers.
  void resume_kept_position();
  std::int64_t next_step() const { return next_; }
  RunSummary run(const StopFlag& stop);

  Engine& engine() { return *engine_; }
  // After run(): the weights that RunSummary::test is of.
  std::span<float> tested_weights() { return tested_.empty() ? engine_->model() : tested_; }

 private:
  struct LoopState;  // what a checkpoint remembers besides tensors
  struct Pace {      // how fast this process has been
    double begin = 0;
    std::int64_t first_step = 0;
    double training_seconds = 0, window_seconds = 0, recent_rate = 0;
    std::int64_t samples = 0, window_samples = 0;
    void add(double step_seconds, std::int64_t step_samples);
  };

  // One look at a data set by all ranks, or by the first where the others do not have the whole model; `keep_going`
  // (may be empty) is for a rank alone. Collective.
  using Evaluate = std::function<Evaluation(const std::function<bool()>& keep_going)>;
  Evaluate evaluation_of(const data::DatasetPtr& data, std::span<float> weights) const;

  TrainingPosition position() const;  // where the training stands
  void load(Checkpoint& checkpoint);
  void run_steps(data::Loader& loader, const StopFlag& stop);
  void carry_out_steps(data::Loader& loader, const StopFlag& stop);
  void obey(const StopFlag& stop);  // run/training/training_control.cpp
  bool replay_due() const;          // another run was changed after this step, and this one was not yet
  void go_on_from(const KeptState::Position& position);
  struct Instruction;
  Instruction next_instruction(const StopFlag& stop);
  void account(const StepProgress& progress, double started, double ended);
  std::int64_t enough_samples(std::int64_t step) const;  // from that step on, with which its epoch may end
  std::int64_t next_pause() const;  // the step after which all ranks meet, because something is due
  data::LoaderOptions loader_options() const;
  data::DatasetPtr samples() const;          // that this worker trains on. Collective
  void do_evaluation(const StopFlag& stop);  // run/training/training_evaluations.cpp
  void evaluate_test();
  void add_own_metrics(Evaluation& evaluation, std::span<float> weights, const data::DatasetPtr& data);
  void load_best();
  bool wants_to_stop(const StopFlag& stop) const;
  std::string folder_of_large_memory() const;  // of files that hold what a rank's memory may not
  void save(Checkpointer::IfBusy if_busy);     // run/training/training_saves.cpp
  void keep_step();                            // the state after the step that was just done
  void keep_copy();                            // keep(), unless checkpoints are to do
  void keep();                                 // the state between two steps, when something else has changed
  RunSummary hand_over();
  EngineSettings engine_settings() const;
  void expect_replicas_agree();  // run/training/training_check.cpp
  void judge(Rank culprit);
  RunSummary summarise(double waited_for_input);
  void expect_agreement();  // between all ranks about the weights; Failure naming those that differ
  bool due(const Duration& every, std::int64_t step) const;  // after the step (counted from 0)
  bool evaluation_follows(std::int64_t step) const;          // after so many steps
  double rate(std::int64_t step) const;                      // the schedule's, lowered at a plateau
  double epochs_after(std::int64_t step) const;
  double peak_share(double samples_per_s) const;
  void report_saves(const std::vector<SaveResult>& results);
  void tell(const std::function<void(RunListener&)>& what);

  const TrainingJob& job_;
  Disk& disk_;
  Clock& clock_;
  Team& team_;
  std::string directory_;
  data::BatchSequence batch_sequence_;
  std::unique_ptr<StateKeeper> keeper_;  // null: nothing is kept. The engine's messages are noted there
  std::unique_ptr<Engine> engine_;
  Evaluate evaluate_;  // may be empty
  std::unique_ptr<Checkpointer> checkpointer_;
  std::vector<RunListener*> listeners_;
  std::function<std::shared_future<void>()> before_save_;
  std::unique_ptr<LoopState> loop_;
  std::unique_ptr<ReplicaCheck> check_;  // null: the ranks do not check each other
  std::string loop_text_;                // loop_ as JSON, without what every step changes
  std::int64_t next_ = 0;                // the step to do next
  std::int64_t last_saved_ = -1;
  std::optional<Evaluation> last_evaluation_;
  std::span<float> tested_;  // the best weights, where they are not the last ones
  Buffer tested_memory_;
  FileMemory tested_file_;
  Pace pace_;
  bool save_first_ = false;   // before the first step
  bool stop_agreed_ = false;  // some rank wants to stop
  bool followed_ = false;     // whether requests of others are looked for
  ControlReader* control_ = nullptr;
  std::vector<JournalLine> replayed_;  // by step
  double core_peak_ = 0, flops_per_sample_ = 0;
};

}  // namespace echelon
