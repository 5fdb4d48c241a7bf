#include "parallel/server/keys.h"

#include <algorithm>

#include "parallel/server/sites.h"

namespace echelon::exchanges {

int server_count(const ServerSettings& s, int workers) {
  return s.servers == 0 ? workers : std::min(s.servers, workers);
}

Rank rank_of_server(const ServerSettings& s, int server, int workers) {
  return server * workers / server_count(s, workers);
}

std::vector<Range> owners_of_parameters(std::span<const std::size_t> offsets, std::size_t floats, int owners) {
  std::vector<Range> ranges;
  std::size_t at = 0, next = 0;
  for (int r = 0; r < owners; ++r) {
    const double goal = static_cast<double>(floats) * static_cast<double>(r + 1) / static_cast<double>(owners);
    std::size_t end = at;
    for (; next < offsets.size(); ++next) {  // as long as that comes nearer to an even share
      const std::size_t after = next + 1 < offsets.size() ? offsets[next + 1] : floats;
      if (r + 1 < owners && static_cast<double>(after) - goal > goal - static_cast<double>(end)) break;
      end = after;
    }
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

std::vector<Key> cut_into_keys(const ServerSettings& s, const KeyQuery& c) {
  std::vector<Key> keys;
  const int servers = server_count(s, c.workers);
  const bool slices = c.order.cuts_slices;
  const std::size_t most = slices ? std::max<std::size_t>(c.order.bytes / sizeof(float), 16) : c.floats;
  const std::vector<Range> whole =
      s.factors ? owners_of_parameters(c.tensors, c.floats, servers) : std::vector<Range>{};
  for (int i = 0; i < servers; ++i) {
    const Range range = s.factors ? whole[static_cast<std::size_t>(i)] : part_of(i, servers, c.floats, 16);
    const Rank rank = rank_of_server(s, i, c.workers);
    for (std::size_t at = range.begin; at < range.end;) {
      std::size_t end = std::min(at + most, range.end);
      if (!s.planned && !slices)
        if (const auto next = std::ranges::upper_bound(c.tensors, at); next != c.tensors.end())
          end = std::min(end, *next);
      keys.push_back({{at, end}, rank});
      at = end;
    }
  }
  return keys;
}

std::vector<Key> cut_into_keys(const ServerSettings& s, const ExchangeParts& parts) {
  KeyQuery c{.workers = parts.workers(), .floats = parts.floats(), .tensors = {}, .order = parts.order};
  std::size_t at = 0;
  for (const CodecPiece& p : parts.pieces({0, c.floats})) c.tensors.push_back(at), at += p.size;
  if (parts.sync.kind != Sync::Kind::approximate) return cut_into_keys(s, c);
  const std::vector<int> sites = sites_of(parts.sync, parts.world->place().host);
  c.workers = smallest_site(sites);  // every site has the same keys, on servers at the same places
  std::vector<Key> keys = cut_into_keys(s, c);
  const std::vector<Rank> here = ranks_of_site(sites, sites[static_cast<std::size_t>(parts.rank())]);
  for (Key& key : keys) key.server = here[static_cast<std::size_t>(key.server)];
  return keys;
}

}  // namespace echelon::exchanges
