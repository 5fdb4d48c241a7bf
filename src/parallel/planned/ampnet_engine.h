#pragma once
// AMPNet (Gaunt et al., 2017): a pipeline that is driven by messages. There is no list of tasks: a stage runs whatever
// has arrived, backward passes first, and hands the result on. It updates its weights by itself, after every `updates`
// micro-batches, while others are under way; a backward pass reads the newest weights, which may not be those that its
// forward pass read. At most `active` micro-batches are under way at once. The first stage begins them, of one step
// after another, without waiting between steps.
//
// So micro-batches may take different times: where the model reads sequences that are left padded (models/model.h),
// each is as long as its longest sequence, and its graph is made for that length when it occurs for the first time.
//
// The result depends on the order in which messages arrive: it is the same every time in a simulated world, and nowhere
// else. At the end of run() nothing is under way: evaluations and checkpoints see a model whose stages have seen the
// same micro-batches.

#include <deque>
#include <map>
#include <memory>

#include "parallel/planned/planned_engine.h"
#include "parallel/team/message_wait.h"
#include "world/mailbox/mailbox.h"

namespace echelon {

class AmpnetEngine final : public PlannedEngine {
 public:
  AmpnetEngine(const EngineSettings& settings, Team& team);  // as PlannedEngine; one replica, a stage on each rank
  Reached run(const StepRange& range) override;
  bool follow(MessageOrder& order) override { return order_ = &order, true; }
  // By rank: its updates, and how many of its own a gradient missed, on average.
  std::vector<Figure> figures() override;

 private:
  struct Instance {  // a micro-batch that is under way
    std::int64_t step = 0;
    int shard = 0;
    MicroBatchSize size = {0};
    std::int64_t batch = 0;           // samples of the whole batch
    std::int64_t updates_before = 0;  // its forward pass
  };
  struct StepOnTheWay {  // as the first stage sees it
    std::int64_t samples = 0;
    int to_do = 0, without_result = 0;  // micro-batches
    double loss = 0, correct = 0;
  };
  enum Kind : std::uint16_t { forward_ready, backward_ready, result, wants_stop, end_of_run };

  bool first() const { return stage_.stage() == 0; }
  bool last() const { return stage_.stage() == layout_.stages() - 1; }
  int number_of(std::int64_t step, int shard) const;
  StepContext context(const Instance& instance) const;
  void take_messages();
  void sort_in(const Message& message);
  void begin_next();  // the first stage: one more micro-batch is under way
  void run_forward(Instance instance);
  void run_backward(const Instance& instance);
  void hand_on(Kind kind, const Instance& instance, Rank to);
  void add_contribution(const Instance& instance);
  void update_stage(std::int64_t step);
  void report_steps();
  std::int64_t length_of(const data::Batch& batch, int shard) const;

  StageCompute& stage_;
  const StepRange* range_ = nullptr;  // during run()
  std::unique_ptr<Mailbox> mailbox_;  // the same
  std::unique_ptr<MessageWait> wait_;
  MessageOrder* order_ = nullptr;            // null: nobody notes it
  const data::Batch* batch_ = nullptr;       // the last that was read: backward passes read nothing of it
  std::map<int, Instance> under_way_;        // between a forward and a backward pass here, by number
  std::deque<Instance> forward_, backward_;  // that have arrived
  std::vector<float> sum_;                   // of gradients since the last update
  std::int64_t summed_ = 0, summed_samples_ = 0, batch_of_sum_ = 1;
  std::int64_t updates_ = 0, updates_before_run_ = 0;
  double all_updates_ = 0, gradients_ = 0, missed_ = 0;
  bool over_ = false, asked_ = false;

  // The first stage's.
  std::map<std::int64_t, StepOnTheWay> steps_;
  std::int64_t next_step_ = 0, reported_ = 0;
  int next_shard_ = 0, active_ = 0;
  bool stop_ = false;
};

}  // namespace echelon
