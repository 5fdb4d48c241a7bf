// Owners: member i owns part i. All send their numbers of that part straight to it, it combines them and sends the
// result to all. The ring's bytes in two steps, but every member talks to every other: good while n is small or latency
// large.
//   messages 2(n-1)    bytes 2B(n-1)/n    time 2a + small gaps + 2(n-1)/n B b + (n-1)/n B c
//
// Since an owner sees every contribution, it may sum them in any order that it likes: this is the algorithm with which
// the sum over logical shards is exact for any number of members (shard_sum.h).

#include "collective/algorithms.h"

namespace echelon {

namespace {

void plan(const TrafficQuery& c, Mover& mover) {
  const auto part = [&](int i) { return part_of(i, c.n, c.count); };
  const Range mine = part(c.index);
  for (int k = 1; k < c.n; ++k) {
    const int to = (c.index + k) % c.n, from = (c.index + c.n - k) % c.n;
    mover.move({.to = to, .out = part(to), .from = from, .in = mine, .reduce = true, .step = 0});
  }
  for (int k = 1; k < c.n; ++k) {
    const int to = (c.index + k) % c.n, from = (c.index + c.n - k) % c.n;
    mover.move({.to = to, .out = mine, .from = from, .in = part(from), .step = 1});
  }
}

Traffic traffic(const TrafficQuery& c) {
  const std::size_t mine = part_of(c.index, c.n, c.count).count(), others = static_cast<std::size_t>(c.n - 1);
  return {2 * static_cast<std::uint64_t>(others), (c.count - mine + others * mine) * c.item};
}

double seconds(double bytes, int n, const Link& l) {
  const double peers = n - 1, share = bytes * peers / n;
  // A message that another one follows at once costs about half a latency less than one that is waited for.
  return 2 * l.latency + (peers - 1) * l.latency + 2 * share * l.per_byte + share * l.combine_per_byte;
}

bool fixed_tree(int, int) { return true; }

}  // namespace

const Algorithm owners_all_reduce{.name = "owners",
                                  .about = "every member combines one part for all (all-to-all reduce-scatter)",
                                  .plan = plan,
                                  .traffic = traffic,
                                  .seconds = seconds,
                                  .fixed_tree = fixed_tree};

}  // namespace echelon
