#pragma once
// A world that counts what a rank sends to others (World::sent) and, with a limit, lets it send and receive only as
// fast as a link of some rate would (an experiment that needs no root and no second machine). The only wrapper around a
// world: a run's world is wrapped at most once. Everything else is the inner world's, but for a native all-reduce,
// whose messages nobody could count. With a limit there is no shared memory either: everything goes over the link.
//
// The link: each rank has a full-duplex wire of `bytes_per_second` to one switch that is never the bottleneck. What a
// rank sends leaves in the order of the sends, one after the other; what comes to it shares its wire in the same way.
// A message takes `latency` more. In a simulated world give the cluster these links instead (world/sim/cluster.h).
// The inner world must be faster.

#include <cstdint>
#include <memory>
#include <vector>

#include "world/world.h"

namespace echelon {

struct LinkLimit {
  double bytes_per_second = 0;  // 0: no limit
  double latency = 0;           // seconds
};

// The inner world must outlive it, and no Work of it may.
std::unique_ptr<World> make_metered(World& inner, const LinkLimit& limit = {});

// The bytes that this rank has sent to each other one so far, by rank. Empty where nobody counts them: in a world that
// is not metered, or has more than most_peers_counted ranks.
constexpr int most_peers_counted = 64;
std::vector<std::uint64_t> bytes_to_peers(const World& world);

struct SentMessage {
  double at = 0;  // when it was handed to the world, by the rank's clock
  std::uint64_t bytes = 0;
  Rank to = 0;
  OperationKind kind = OperationKind::plain;
};

// From now on a metered world keeps what its rank sends, the first `most` messages, for a trace. Other worlds keep
// nothing.
void keep_messages(World& world, std::size_t most);
std::vector<SentMessage> kept_messages(World& world);

}  // namespace echelon
