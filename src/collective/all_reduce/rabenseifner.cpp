// Rabenseifner (ICCS 2004): reduce-scatter by recursive halving, all-gather by recursive doubling. The ring's bytes in
// 2 log2 n steps; if n is no power of two, some members send everything to a neighbour first.
//   messages 2 log2 n (+ 1)    bytes 2B(p-1)/p, p the power of two below n (+ B)
//   time 2 log2 n a + 2(p-1)/p B b + (p-1)/p B c

#include <array>

#include "collective/algorithms.h"
#include "collective/transfers/fold.h"

namespace echelon {

namespace {

struct Halving {  // the part that a member keeps and the part that it sends away at one distance
  Range keep, give;
};

// The halves of `data` for a member of the core, from the largest distance to 1. Returns how many there are.
int halve(const Fold& fold, int me, Range data, std::array<Halving, 32>& steps) {
  int k = 0;
  for (int bit = fold.core / 2; bit > 0; bit /= 2, ++k) {
    const std::size_t mid = data.begin + data.count() / 2;
    const Range low{data.begin, mid}, high{mid, data.end};
    steps[static_cast<std::size_t>(k)] = me & bit ? Halving{high, low} : Halving{low, high};
    data = steps[static_cast<std::size_t>(k)].keep;
  }
  return k;
}

void plan_rabenseifner(const AllReduceShape& c, TransferRunner& runner) {
  const Fold fold = fold_of(c.n);
  const Range all{0, c.count};
  int step = plan_fold(fold, c.index, all, 0, runner);
  if (!fold.sits_out(c.index)) {
    const int me = fold.core_index(c.index);
    std::array<Halving, 32> halves;
    const int levels = halve(fold, me, all, halves);
    int bit = fold.core / 2;
    for (int k = 0; k < levels; ++k, bit /= 2, ++step) {
      const Halving& h = halves[static_cast<std::size_t>(k)];
      const int peer = fold.member(me ^ bit);
      runner.run({.to = peer, .out = h.give, .from = peer, .in = h.keep, .reduce = true, .step = step});
    }
    bit = 1;
    for (int k = levels - 1; k >= 0; --k, bit *= 2, ++step) {
      const Halving& h = halves[static_cast<std::size_t>(k)];
      const int peer = fold.member(me ^ bit);
      runner.run({.to = peer, .out = h.keep, .from = peer, .in = h.give, .step = step});
    }
  }
  plan_unfold(fold, c.index, all, runner);
}

MemberTraffic rabenseifner_traffic(const AllReduceShape& c) {
  const Fold fold = fold_of(c.n);
  if (fold.sits_out(c.index)) return {1, c.bytes()};
  std::array<Halving, 32> halves;
  const int levels = halve(fold, fold.core_index(c.index), {0, c.count}, halves);
  std::size_t elements = 0;
  for (int k = 0; k < levels; ++k)
    elements += halves[static_cast<std::size_t>(k)].give.count() + halves[static_cast<std::size_t>(k)].keep.count();
  MemberTraffic t{2 * static_cast<std::uint64_t>(levels), elements * c.item};
  if (c.index < 2 * fold.extra) {
    t.messages += 1;
    t.bytes += c.bytes();
  }
  return t;
}

double rabenseifner_seconds(double bytes, int n, const LinkCosts& l) {
  const Fold fold = fold_of(n);
  const double share = bytes * (fold.core - 1) / fold.core;
  const double outside = 2 * (l.latency + bytes * l.per_byte) + bytes * l.combine_per_byte;
  return 2 * ceil_log2(fold.core) * l.latency + 2 * share * l.per_byte + share * l.combine_per_byte +
         (fold.extra > 0 ? outside : 0);
}

}  // namespace

Algorithm rabenseifner_all_reduce() {
  return {.name = "rabenseifner",
          .about = "recursive halving, then doubling (Rabenseifner 2004)",
          .plan = plan_rabenseifner,
          .traffic = rabenseifner_traffic,
          .seconds = rabenseifner_seconds};
}

}  // namespace echelon
