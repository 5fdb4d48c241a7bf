#include "parallel/server/local_servers.h"

#include "parallel/server/chain.h"
#include "parallel/server/counts.h"

namespace echelon::exchanges {

LocalServers::LocalServers(const ServerSettings& settings, ExchangeParts& parts, const ServerMap& map)
    : parts_(parts), map_(map) {
  if (settings.processes) process_ = ServerProcess::make(parts);
  if (!settings.is_flat()) relay_ = std::make_unique<ServerRelay>(parts, settings.overlay, map.keys);
  for (int p = 0; p < settings.replicas; ++p) {
    const Rank head = (parts.rank() - p + parts.workers()) % parts.workers();
    const Range keys = map.keys_of(head);
    shards_.push_back(keys.count() == 0 ? nullptr
                                        : std::make_unique<ServerShard>(settings, parts, map, keys, p, process_.get()));
    if (process_) process_->add(shards_.back().get());
  }
}

LocalServers::~LocalServers() {
  if (process_) process_->close();  // the tasks may wait for it
}

void LocalServers::begin_round() {
  if (process_) process_->begin_round();
}

void LocalServers::end_round() {
  if (process_) process_->end_round();
}

LostMembers LocalServers::lost() const {
  LostMembers lost = 0;
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p] && shards_[p]->is_lost()) lost |= member_bit(static_cast<int>(p));
  return lost;
}

void LocalServers::learn_of_lost(std::span<const LostMembers> chains) {
  for (std::size_t p = 0; p < shards_.size(); ++p) {
    const Rank head = (parts_.rank() - static_cast<Rank>(p) + parts_.workers()) % parts_.workers();
    if (shards_[p]) shards_[p]->learn_of_lost(chains[static_cast<std::size_t>(head)]);
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
