#include "parallel/server/replication.h"

#include "parallel/server/chain.h"
#include "parallel/server/site_mirror.h"

namespace echelon::exchanges {

void WorkerReplication::server_lost(const Message& message) {
  fail("rank {} says that it has lost key {}, which has no replicas", message.from, message.head.key);
}

std::unique_ptr<WorkerReplication> make_worker_replication(const ServerSettings& settings, const ExchangeParts& parts,
                                                           const ServerMap& map, const ParameterCopy& copy) {
  if (settings.replicas > 1) return make_chain_worker(settings, parts, map, copy);
  if (settings.has_sites()) return make_site_worker(parts, map);
  return std::make_unique<WorkerReplication>(map);
}

std::unique_ptr<ShardReplication> make_shard_replication(const ServerSettings& settings, const ServerMap& map,
                                                         int position, ShardCore& core,
                                                         std::function<void()> may_answer) {
  if (settings.replicas > 1) return make_chain_member(settings, position, core);
  if (settings.has_sites()) return make_site_mirror(settings, map, core, std::move(may_answer));
  return std::make_unique<ShardReplication>();
}

}  // namespace echelon::exchanges
