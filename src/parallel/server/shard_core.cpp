#include "parallel/server/shard_core.h"

#include <limits>

namespace echelon::exchanges {

Writers::Writers(std::vector<Address> list, int workers)
    : list_(std::move(list)),
      reply_tag_(static_cast<std::size_t>(workers), Exchange::worker_tag),
      gone_(static_cast<std::size_t>(workers)) {
  for (const Address& a : list_) reply_tag_[static_cast<std::size_t>(a.rank)] = static_cast<std::uint16_t>(a.tag);
}

std::size_t Writers::index_of(Rank rank) const {
  return static_cast<std::size_t>(std::ranges::find(list_, rank, &Address::rank) - list_.begin());
}

bool Writers::all_gone() const {
  return std::ranges::all_of(list_, [&](const Address& a) { return is_gone(a.rank); });
}

const std::vector<Rank>& Writers::present() {
  present_.clear();
  for (const Address& a : list_)
    if (!is_gone(a.rank)) present_.push_back(a.rank);
  return present_;
}

void WorkerSpeeds::pushes(Rank worker, double now) {
  const auto w = static_cast<std::size_t>(worker);
  if (began_[w] >= 0) {
    const double took = now - began_[w];
    interval_[w] = interval_[w] > 0 ? 0.8 * interval_[w] + 0.2 * took : took;
  }
  began_[w] = now;
}

double WorkerSpeeds::of(Rank worker) const {
  double sum = 0;
  int known = 0;
  for (const double i : interval_)
    if (i > 0) sum += 1 / i, ++known;
  const double own = interval_[static_cast<std::size_t>(worker)];
  return own > 0 && known > 0 ? 1 / own / (sum / known) : 1;
}

std::int64_t ShardCore::oldest(const ShardKey& key) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Address& a : writers.list()) least = std::min(least, key.clocks[static_cast<std::size_t>(a.rank)]);
  return least;
}

}  // namespace echelon::exchanges
