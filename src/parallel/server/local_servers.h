#pragma once
// The servers that live on this rank: its own, the replicas of those before it in their chains, and a relay where
// messages are added up on the way (overlay). Each has a task of its own, and all servers perhaps a process
// (server_process.h).

#include <memory>
#include <span>
#include <vector>

#include "parallel/server/relay.h"
#include "parallel/server/shard.h"

namespace echelon::exchanges {

class LocalServers {
 public:
  // All outlive it.
  LocalServers(const ServerSettings& settings, ExchangeParts& parts, const ServerMap& map);
  ~LocalServers();

  // Around a round of steps: where servers have a process, it lives in between.
  void begin_round();
  void end_round();
  bool have_a_process() const { return process_ != nullptr; }
  // Which of them are lost (by position in their chains), and which members of a chain are, by its first rank.
  LostMembers lost() const;
  void learn_of_lost(std::span<const LostMembers> chains);

  // While the tasks are idle (after `drain`):
  void read_model(std::span<float> out) const;  // what is here of it; the rest stays as it is
  ServerCounts counts() const;                  // of those servers whose model counts
  std::vector<StateSpan> state();

  // At any time: for whom the server waits that answers about a key; `at`: the server.
  Rank latecomer(std::uint32_t key, const WorkerReplication::Answerer& at) const;

 private:
  const ExchangeParts& parts_;
  const ServerMap& map_;
  std::unique_ptr<ServerProcess> process_;            // null: their tasks handle the messages
  std::vector<std::unique_ptr<ServerShard>> shards_;  // by position in a chain; null: no server is there
  std::unique_ptr<ServerRelay> relay_;                // null: every worker writes to servers
};

}  // namespace echelon::exchanges
