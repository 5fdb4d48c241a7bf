#pragma once
// The servers that live on this rank: its own, the replicas of those before it in their chains, and a relay where
// messages are added up on the way (overlay). Each has a task of its own.

#include <memory>
#include <span>
#include <vector>

#include "parallel/server/relay.h"
#include "parallel/server/shard.h"

namespace echelon::exchanges {

class LocalServers {
 public:
  // All outlive it.
  LocalServers(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map);

  // While the tasks are idle (after `drain`):
  void read_model(std::span<float> out) const;  // what is here of it; the rest stays as it is
  ServerCounts counts() const;                  // of those servers whose model counts
  std::vector<StateSpan> state();

  // At any time: for whom the server waits that answers about a key; `at`: the server.
  Rank latecomer(std::uint32_t key, const WorkerReplication::Answerer& at) const;

 private:
  const ExchangeParts& parts_;
  const ServerMap& map_;
  std::vector<std::unique_ptr<ServerShard>> shards_;  // by position in a chain; null: no server is there
  std::unique_ptr<ServerRelay> relay_;                // null: every worker writes to servers
};

}  // namespace echelon::exchanges
