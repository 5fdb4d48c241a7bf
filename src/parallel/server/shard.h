#pragma once
// One server: holds the shared sides of a part of the model, and a task that handles the messages sent to it, one by
// one. Workers push contributions and get answers. Its collaborators, each with its own state:
//
//   ShardCore          keys, writers, speeds, counts                                    shard_core.h
//   PushDecoder        what a push says                                                 push_stage.h
//   Merger             in rounds or as contributions come; who is answered when         merger.h
//   AnswerSender       what an answer looks like                                        answers.h
//   ShardReplication   copies of this server on other ranks                             replication.h

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "parallel/server/merger.h"

namespace echelon::exchanges {

class ServerShard {
 public:
  // The server of these keys (of the map), at that position of its chain. Settings, parts and map outlive it.
  ServerShard(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map, Range keys,
              int position);
  ~ServerShard();

  // While the task is idle (after `drain`):
  bool has_the_model() const { return replication_->has_the_model(); }
  void read_model(std::span<float> out) const;
  ServerCounts counts() const;
  std::vector<StateSpan> state();
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
