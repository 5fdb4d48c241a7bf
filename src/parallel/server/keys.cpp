#include "parallel/server/keys.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

#include "parallel/exchanges/measured_link.h"
#include "parallel/server/relay.h"
#include "parallel/server/sites.h"
#include "parallel/server/transfer_order.h"

namespace echelon::exchanges {

namespace {
constexpr int ring_segments = 64;
}  // namespace

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

std::vector<int> ring_servers(int servers, int places, int segments) {
  const auto point = [](const char* of, int a, int b) {
    return Stream({.seed = 1,
                   .step = static_cast<std::uint32_t>(a),
                   .shard = static_cast<std::uint32_t>(b),
                   .layer = stream_layer(of)})
        .bits(0);
  };
  std::vector<std::pair<std::uint32_t, int>> ring;
  for (int server = 0; server < servers; ++server)
    for (int place = 0; place < places; ++place) ring.emplace_back(point("server", server, place), server);
  std::ranges::sort(ring);
  std::vector<int> list;
  for (int segment = 0; segment < segments; ++segment) {
    const auto next = std::ranges::lower_bound(ring, std::pair{point("segment", segment, 0), 0});
    list.push_back(next == ring.end() ? ring.front().second : next->second);
  }
  return list;
}

namespace {

// The ranges that each server has, in order.
std::vector<std::vector<Range>> ranges_of_servers(const ServerSettings& s, const KeyQuery& c, int servers) {
  std::vector<std::vector<Range>> ranges(static_cast<std::size_t>(servers));
  if (s.factors) {
    const std::vector<Range> whole = owners_of_parameters(c.tensors, c.floats, servers);
    for (std::size_t i = 0; i < ranges.size(); ++i) ranges[i] = {whole[i]};
  } else if (s.ring > 0) {  // as many segments for any number of servers, so that most stay when one comes or goes
    const std::vector<int> owner = ring_servers(servers, s.ring, ring_segments);
    for (int i = 0; i < ring_segments; ++i)
      ranges[static_cast<std::size_t>(owner[static_cast<std::size_t>(i)])].push_back(
          part_of(i, ring_segments, c.floats, 16));
  } else {
    for (int i = 0; i < servers; ++i) ranges[static_cast<std::size_t>(i)] = {part_of(i, servers, c.floats, 16)};
  }
  return ranges;
}

}  // namespace

std::vector<Key> cut_into_keys(const ServerSettings& s, const KeyQuery& c) {
  std::vector<Key> keys;
  const int servers = server_count(s, c.workers);
  const bool slices = c.order.cuts_slices;
  const std::size_t most = slices ? std::max<std::size_t>(c.order.bytes / sizeof(float), 16) : c.floats;
  const std::vector<std::vector<Range>> ranges = ranges_of_servers(s, c, servers);
  for (int i = 0; i < servers; ++i)
    for (const Range range : ranges[static_cast<std::size_t>(i)]) {
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

namespace {

// Every site has the same keys, on servers at the same places.
std::vector<Key> keys_of_run(const ServerSettings& s, const ExchangeParts& parts, const std::vector<int>& sites) {
  KeyQuery c{.workers = parts.workers(), .floats = parts.floats(), .tensors = {}, .order = parts.order};
  std::size_t at = 0;
  for (const CodecPiece& p : parts.pieces({0, c.floats})) c.tensors.push_back(at), at += p.size;
  if (sites.empty()) return cut_into_keys(s, c);
  c.workers = smallest_site(sites);
  std::vector<Key> keys = cut_into_keys(s, c);
  const std::vector<Rank> here = ranks_of_site(sites, sites[static_cast<std::size_t>(parts.rank())]);
  for (Key& key : keys) key.server = here[static_cast<std::size_t>(key.server)];
  return keys;
}

// Every worker of the site that contributes; or the server's children in the overlay, and its own worker.
std::vector<Address> writers_of_run(const ServerSettings& s, const ExchangeParts& parts,
                                    const std::vector<int>& sites) {
  const Rank own = parts.rank();
  std::vector<Address> list;
  if (s.is_flat()) {
    const auto contributes = [&](Rank r) {
      return parts.members.empty() || std::ranges::find(parts.members, r) != parts.members.end();
    };
    for (Rank r = 0; r < parts.workers(); ++r)
      if (contributes(r) &&
          (sites.empty() || sites[static_cast<std::size_t>(r)] == sites[static_cast<std::size_t>(own)]))
        list.push_back({r, Exchange::worker_tag});
    return list;
  }
  const std::vector<int>& hosts = parts.world->place().host;
  list.push_back({own, Exchange::worker_tag});
  for (const Rank child : children_of(s.overlay, own, own, hosts))
    list.push_back(ServerRelay::reply_to(s.overlay, child, own, hosts));
  return list;
}

}  // namespace

ServerMap make_server_map(const ServerSettings& s, const ExchangeParts& parts) {
  const std::vector<int>& hosts = parts.world->place().host;
  ServerMap map;
  if (s.has_sites()) map.sites = sites_of(s.sites, hosts);
  map.keys = keys_of_run(s, parts, map.sites);
  map.writers = writers_of_run(s, parts, map.sites);
  for (const Key& key : map.keys)
    map.push_to.push_back(ServerRelay::entry_address(s.overlay, parts.rank(), key.server, hosts));
  if (parts.order.by_magnitude && parts.workers() > 1) map.bandwidth = measure_link(parts).bandwidth;
  map.read_order = parts.order.by_times ? measured_order(parts) : parts.trainer->reading_order();
  return map;
}

Range ServerMap::keys_of(Rank server) const {
  const auto first = std::ranges::find(keys, server, &Key::server);
  const auto begin = static_cast<std::size_t>(first - keys.begin());
  return {begin, begin + static_cast<std::size_t>(std::ranges::count(keys, server, &Key::server))};
}

std::vector<std::size_t> ServerMap::reading_order(Range of) const {
  std::vector<std::size_t> order;
  std::vector<char> listed(of.count());
  const auto add = [&](std::size_t i) {
    if (!std::exchange(listed[i], 1)) order.push_back(i);
  };
  for (const Range& r : read_order)
    for (std::size_t i = 0; i < of.count(); ++i)
      if (overlaps(keys[of.begin + i].range, r)) add(i);
  for (std::size_t i = 0; i < of.count(); ++i) add(i);
  return order;
}

}  // namespace echelon::exchanges
