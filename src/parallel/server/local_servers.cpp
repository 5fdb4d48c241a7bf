#include "parallel/server/local_servers.h"

#include "parallel/server/counts.h"

namespace echelon::exchanges {

LocalServers::LocalServers(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map)
    : parts_(parts), map_(map) {
  if (!settings.is_flat()) relay_ = std::make_unique<ServerRelay>(parts, settings.overlay, map.keys);
  for (int p = 0; p < settings.replicas; ++p) {
    const Rank head = (parts.rank() - p + parts.workers()) % parts.workers();
    const Range keys = map.keys_of(head);
    shards_.push_back(keys.count() == 0 ? nullptr : std::make_unique<ServerShard>(settings, parts, map, keys, p));
  }
}

void LocalServers::read_model(std::span<float> out) const {
  for (const auto& shard : shards_)
    if (shard && shard->has_the_model()) shard->read_model(out);
}

ServerCounts LocalServers::counts() const {
  ServerCounts sum;
  for (const auto& shard : shards_)
    if (shard && shard->has_the_model()) add_counts(sum, shard->counts());
  return sum;
}

std::vector<StateSpan> LocalServers::state() {
  std::vector<StateSpan> all;
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p]) add_states(all, fmt::format("{} ", p), shards_[p]->state());
  if (relay_) add_states(all, "", relay_->state());
  return all;
}

Rank LocalServers::latecomer(std::uint32_t key, const WorkerReplication::Answerer& at) const {
  if (at.rank != parts_.rank()) return at.rank;
  if (map_.push_to[key].tag == ServerRelay::relay_tag) return relay_->latecomer();
  return shards_[static_cast<std::size_t>(at.position)]->latecomer();
}

}  // namespace echelon::exchanges
