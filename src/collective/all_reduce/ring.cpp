// Ring (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009): reduce-scatter, then all-gather, each in n - 1
// steps around the ring. Every member sends 2(n-1)/n of its bytes, which is the least possible; the steps grow with n.
//   messages 2(n-1)    bytes 2B(n-1)/n    time 2(n-1)a + 2(n-1)/n B b + (n-1)/n B c

#include "collective/algorithms.h"

namespace echelon {

namespace {

void plan_ring(const AllReduceShape& c, TransferRunner& runner) {
  const int right = (c.index + 1) % c.n, left = (c.index + c.n - 1) % c.n;
  const auto part = [&](int i) { return part_of(((i % c.n) + c.n) % c.n, c.n, c.count); };
  for (int s = 0; s < 2 * (c.n - 1); ++s) {
    // First what was combined so far goes on; after n - 1 steps the results do.
    const bool gathering = s >= c.n - 1;
    runner.run({.to = right,
                .out = part(c.index - s),
                .from = left,
                .in = part(c.index - s - 1),
                .reduce = !gathering,
                .step = s});
  }
}

MemberTraffic ring_traffic(const AllReduceShape& c) {
  const auto part = [&](int i) { return part_of(((i % c.n) + c.n) % c.n, c.n, c.count).count(); };
  // All parts twice, but for the one that is not sent on at the end of each half.
  const std::size_t elements = 2 * c.count - part(c.index + 1) - part(c.index + 2);
  return c.n == 1 ? MemberTraffic{} : MemberTraffic{2 * static_cast<std::uint64_t>(c.n - 1), elements * c.item};
}

double ring_seconds(double bytes, int n, const LinkCosts& l) {
  const double steps = n - 1, share = bytes * steps / n;
  return 2 * steps * l.latency + 2 * share * l.per_byte + share * l.combine_per_byte;
}

}  // namespace

Algorithm ring_all_reduce() {
  return {.name = "ring",
          .about = "reduce-scatter and all-gather around a ring (Patarasuk and Yuan 2009)",
          .plan = plan_ring,
          .traffic = ring_traffic,
          .seconds = ring_seconds};
}

}  // namespace echelon
