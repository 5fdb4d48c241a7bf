#pragma once
// The lists of a plan's ranks (plan/layout.h), played through on what their operations and messages cost, without
// computing anything. Each rank runs its list from top to bottom; within a task it runs the nodes of the stage's graph
// in their order, sends, and waits for what it receives. Messages have as many buffers as the ranks' own
// (plan/replay.h), and pass the platform's links (foresight/costs/platform.h). Where a machine has fewer cores than
// ranks, ranks take turns on them. Used by split_replay.cpp. One thread uses it.

#include <map>
#include <queue>
#include <vector>

#include "foresight/costs/platform.h"
#include "foresight/prediction.h"
#include "plan/layout.h"

namespace echelon::foresight {

struct ReplayStep {
  enum class Kind : std::uint8_t { computes, sends, receives, starts_gather, finishes_gather, contributes };
  Kind kind = Kind::computes;
  double seconds = 0, flops = 0;  // computes: on this machine; on a cluster
  int number = 0;                 // of the message, or the parameter
  double bytes = 0;
};
using PassSteps = std::vector<ReplayStep>;  // neighbours that compute are one

struct StagePasses {
  PassSteps of[3];     // by Pass
  double unequal = 1;  // the largest of the ranges in which ranks share the stage, beside the mean
};

class ListReplay {
 public:
  // `stages`: by stage * parts + part. Ranks [0, ranks) are played. All must outlive it.
  ListReplay(const PlanLayout& layout, const Platform& platform, const std::vector<StageMessage>& messages,
             const std::vector<StagePasses>& stages, int ranks);

  void run();
  // When each rank is through, and what it did until then.
  const std::vector<double>& ends() const { return ends_; }
  const std::vector<RankPrediction>& ranks() const { return predictions_; }
  bool complete() const { return done_ == ranks_; }  // else the lists cannot be run on these buffers

 private:
  struct RankState {
    double clock = 0;
    std::size_t task = 0, step = 0;
    bool blocked = false;
    std::map<int, double> gathered;  // by parameter: when it is there
  };
  struct Key {  // of a message of a micro-batch on its way to a rank
    int message, number, to;
    auto operator<=>(const Key&) const = default;
  };
  struct Sender {
    int message, from, line;
    auto operator<=>(const Sender&) const = default;
  };
  struct Outgoing {
    std::vector<double> taken;  // when the receiver took the k-th
    std::size_t sent = 0;
  };
  bool advance(int rank);  // one step; false: it waits, or is at the end
  void compute(int rank, RankState& state, double seconds);
  struct MicroBatch {
    int shard = 0;
    int number = 0;  // the shard's, but that a list over several steps (pipedream) goes on counting
  };
  bool send(int rank, RankState& state, const ReplayStep& step, MicroBatch of);
  bool receive(int rank, RankState& state, const ReplayStep& step, MicroBatch of);
  void exchange_state(int rank, RankState& state, const ReplayStep& step, const HostedStage& stage);
  MicroBatch micro_batch_of(int rank, const StageTask& task) const;
  const HostedStage& hosted(int rank, const StageTask& task, int shard) const;

  const PlanLayout& layout_;
  const Platform& platform_;
  const std::vector<StageMessage>& messages_;
  const std::vector<StagePasses>& stages_;
  const int ranks_;
  Wires wires_;
  std::vector<std::vector<HostedStage>> hosted_;  // by rank
  std::vector<std::vector<double>> core_free_;    // by machine, where ranks take turns
  std::vector<RankState> states_;
  std::vector<double> ends_;
  std::vector<RankPrediction> predictions_;
  std::map<Key, double> arrivals_;
  std::map<Key, std::pair<Sender, std::size_t>> slot_of_;  // which of the sender's messages it is
  std::map<Sender, Outgoing> outgoing_;
  std::map<Key, int> waiting_receivers_;
  std::map<Sender, int> waiting_senders_;
  using Due = std::pair<double, int>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  int done_ = 0;
};

}  // namespace echelon::foresight
