// Owners: member i owns part i. All members send their data of that part straight to it; it combines the data and sends
// the result to all. As many bytes as the ring in two steps, but every member talks to every other: good while n is
// small or the latency is large.
//   messages 2(n-1)    bytes 2B(n-1)/n    time 2a + small gaps + 2(n-1)/n B b + (n-1)/n B c
//
// An owner has every contribution, so it can sum them in any order: the sum over logical shards in the fixed tree works
// the same way (shard_sum.h).

#include "collective/algorithms.h"

namespace echelon {

namespace {

void plan_owners(const AllReduceShape& c, TransferRunner& runner) {
  const auto part = [&](int i) { return part_of(i, c.n, c.count); };
  const Range mine = part(c.index);
  for (int k = 1; k < c.n; ++k) {
    const int to = (c.index + k) % c.n, from = (c.index + c.n - k) % c.n;
    runner.run({.to = to, .out = part(to), .from = from, .in = mine, .reduce = true, .step = 0});
  }
  for (int k = 1; k < c.n; ++k) {
    const int to = (c.index + k) % c.n, from = (c.index + c.n - k) % c.n;
    runner.run({.to = to, .out = mine, .from = from, .in = part(from), .step = 1});
  }
}

MemberTraffic owners_traffic(const AllReduceShape& c) {
  const std::size_t mine = part_of(c.index, c.n, c.count).count(), others = static_cast<std::size_t>(c.n - 1);
  return {2 * static_cast<std::uint64_t>(others), (c.count - mine + others * mine) * c.item};
}

double owners_seconds(double bytes, int n, const LinkCosts& l) {
  const double peers = n - 1, share = bytes * peers / n;
  // A message that another one follows at once costs about half a latency less than one that is waited for.
  return 2 * l.latency + (peers - 1) * l.latency + 2 * share * l.per_byte + share * l.combine_per_byte;
}

}  // namespace

Algorithm owners_all_reduce() {
  return {.name = "owners",
          .about = "every member combines one part for all (all-to-all reduce-scatter)",
          .plan = plan_owners,
          .traffic = owners_traffic,
          .seconds = owners_seconds};
}

}  // namespace echelon
