// A server among those of other sites (server_sites.h): it sends them what has become significant, adds what they send,
// and keeps to the mirror clock: a site that is further ahead of the slowest than `staleness` steps lets its workers
// wait, so that changes that others have not sent yet cannot be too many.

#include <algorithm>
#include <limits>

#include "parallel/server/shard.h"

namespace echelon::exchanges {

namespace {
constexpr std::int64_t for_ever = std::numeric_limits<std::int64_t>::max();
}

// Steps that its workers have made on average; for ever if they have all left.
std::int64_t ServerShard::site_clock() const {
  if (have_all_left()) return for_ever;
  std::int64_t updates = 0;
  for (const Slice& s : slices_) updates += s.version;
  return updates / static_cast<std::int64_t>(slices_.size() * writers_.size());
}

void ServerShard::tell_sites(Slice& s, std::uint32_t key) {
  const std::span<const std::byte> bytes = s.changes->take(s.shared->model(), s.version);
  const std::int64_t clock = site_clock();
  if (bytes.empty() && clock == told_clock_) return;
  told_clock_ = clock;
  for (const Rank peer : place_.peers)
    parts_.mailbox->post(peer, {.kind = site_change, .tag = Exchange::server_tag, .key = key, .clock = clock}, bytes);
}

void ServerShard::take_site_change(const Message& message) {
  const auto peer = std::ranges::find(place_.peers, message.from);
  const std::uint32_t key = message.head.key;
  if (peer == place_.peers.end() || key < first_ || key - first_ >= slices_.size())
    fail("rank {} sent a change of key {}, which is not a counterpart's", message.from, key);
  Slice& s = slices_[key - first_];
  if (!std::as_const(message).payload().empty()) SignificantChanges::apply(message.payload(), s.shared->movable());
  site_clocks_[static_cast<std::size_t>(peer - place_.peers.begin())] = message.head.clock;
  for (std::size_t i = 0; i < slices_.size(); ++i)
    answer_those_who_may(slices_[i], static_cast<std::uint32_t>(first_ + i));
}

bool ServerShard::is_ahead_of_sites() const {
  if (site_clocks_.empty()) return false;
  const std::int64_t own = site_clock(), slowest = std::ranges::min(site_clocks_);
  return own != for_ever && slowest != for_ever && own > slowest + parts_.sync.staleness;
}

}  // namespace echelon::exchanges
