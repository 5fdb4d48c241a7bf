#pragma once
// A worker of parameter servers: pushes its contributions to them, takes their answers, and keeps its own copy of the
// weights in between. When it asks and how long it waits are the sync's decisions (parallel/sync.h). A step that gets
// no parameters moves the worker's own copy by its own gradient, so it sees its own writes. Its collaborators:
//
//   Pusher              contributions on their way: stages, headers                     pusher.h, push_stage.h
//   WorkerInbox         answers, flushes; waiting                                       inbox.h
//   ParameterCopy       what the worker's copy of the parameters has seen               parameter_copy.h
//   WorkerReplication   copies of servers: chains, sites                                replication.h
//   LocalServers        the servers on this rank                                        local_servers.h
//   ServerOverlap       messages while the cores compute                                overlap.h

#include <memory>
#include <utility>
#include <vector>

#include "parallel/exchanges/oplog.h"
#include "parallel/server/local_servers.h"
#include "parallel/server/overlap.h"

namespace echelon::exchanges {

class ServerClient : public Exchange {
 public:
  ServerClient(const ServerSettings& settings, ExchangeParts parts);

  void begin_round() override { servers_.begin_round(); }
  void before_step(const StepInfo& info) override;
  double exchange(const StepInfo& info) override;
  void after_step(const StepInfo& info) override;
  void on_gradient() override { worker_->on_gradient(); }
  bool keep_going() override;
  std::int64_t missed_steps() override { return std::exchange(missed_, 0) * parts_.when.tau; }
  void leave() override;
  void drain() override;
  void read_model(std::span<float> out) override;
  std::vector<StateSpan> state() override;
  std::vector<Figure> figures() override;

 private:
  void begin_asking(const StepInfo& info);
  double exchange_softly(const StepInfo& info);
  void push_and_wait(const StepInfo& info);
  void redo_own_steps(std::uint32_t key, std::int64_t own);
  void agree_on_round();
  void agree_on_lost();

  ServerSettings settings_;
  ExchangeParts parts_;
  SyncTraits sync_;
  ServerMap map_;
  KeyCodecs codecs_;
  std::unique_ptr<WorkerSide> worker_;
  ParameterCopy copy_;
  std::unique_ptr<WorkerReplication> replication_;
  WorkerInbox inbox_;
  Pusher pusher_;
  OpLog own_steps_;             // where parameters come unasked
  bool asks_ = false;           // for answers to the present step's push
  std::int64_t steps_ = 0;      // that it has exchanged in
  double epoch_ = 0;            // of the last one
  std::int64_t pushed_at_ = 0;  // the step of the last push, where answers are not waited for
  std::int64_t missed_ = 0;     // rounds that were closed without this worker, since its last one
  std::int64_t warm_ = 0;       // whether the warm start is over
  ServerCounts counts_;         // of this worker's steps
  LocalServers servers_;
  std::unique_ptr<ServerOverlap> overlap_;  // null: messages go and come after backward. Last: it has a task
};

}  // namespace echelon::exchanges
