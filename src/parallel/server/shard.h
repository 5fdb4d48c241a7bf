#pragma once
// One server: holds the shared sides of a part of the model, and a task that handles the messages sent to it, one by
// one. Workers push contributions and get answers. Its collaborators, each with its own state:
//
//   ShardCore          keys, writers, speeds, counts                                    shard_core.h
//   PushDecoder        what a push says                                                 push_stage.h
//   Merger             in rounds or as contributions come; who is answered when         merger.h
//   AnswerSender       what an answer looks like                                        answers.h
//   ShardReplication   copies of this server on other ranks                             replication.h
//
// Where servers have a process of their own (server_process.h), the task passes the messages on to it.

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "parallel/server/merger.h"
#include "parallel/server/server_process.h"

namespace echelon::exchanges {

class ServerShard {
 public:
  // The server of these keys (of the map), at that position of its chain. Settings, parts and map outlive it, as does
  // the process (null: the task handles the messages).
  ServerShard(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map, Range keys,
              int position, ServerProcess* process);
  ~ServerShard();

  // While the task is idle (after `drain`):
  bool has_the_model() const { return replication_->has_the_model(); }
  void read_model(std::span<float> out) const;
  ServerCounts counts() const;
  std::vector<StateSpan> state();
  bool is_lost() const { return replication_->is_lost(); }
  void lose_state() { replication_->lose_state(); }
  void learn_of_lost(LostMembers lost) { replication_->learn_of_lost(lost); }  // of its chain
  // Where the task does not do it (server_process.h):
  void take(Message& message);
  void learn_of_latecomer(Rank rank) { latecomer_ = rank; }
  void die_by(std::function<void()> how) { core_.die = std::move(how); }  // in an experiment
  // At any time: for whom the workers wait that want an answer about the last message's key, as far as it can tell; -1:
  // for nobody.
  Rank latecomer() const { return latecomer_; }

 private:
  void make_keys(const ServerSettings& settings, const ServerMap& map, Range keys);
  void handle(Message& message);
  void handle_flush(const Message& message, bool seen);
  Rank latecomer_of(const ShardKey& key);

  ShardCore core_;
  int tag_;
  std::unique_ptr<ShardReplication> replication_;
  std::unique_ptr<AnswerSender> answers_;
  std::unique_ptr<Merger> merger_;
  std::atomic<Rank> latecomer_ = -1;
  std::unique_ptr<Task> task_;  // last
};

}  // namespace echelon::exchanges
