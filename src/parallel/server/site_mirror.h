#pragma once
// A server among those of other sites (sites.h): it sends them what has become significant and adds what they send. How
// far its site may be ahead of the slowest is the sync's decision (Sync::most_site_lead): beyond that, its workers are
// not answered.

#include <functional>
#include <memory>

#include "parallel/server/replication.h"

namespace echelon::exchanges {

std::unique_ptr<WorkerReplication> make_site_worker(const ExchangeParts& parts, const ServerMap& map);
// `may_answer` is called when another site has come nearer.
std::unique_ptr<ShardReplication> make_site_mirror(const ServerSettings& settings, const ServerMap& map,
                                                   ShardCore& core, std::function<void()> may_answer);

}  // namespace echelon::exchanges
