// Recursive doubling (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005): in step k members at distance 2^k exchange
// everything and combine it. The fewest steps; log2 n times the bytes. If n is no power of two, some members send their
// data to a neighbour first and get the result at the end.
//   messages log2 n (or 1, or 1 + log2 n)    bytes the same times B    time ceil(log2 n) (a + B b + B c)

#include "collective/algorithms.h"
#include "collective/transfers/fold.h"

namespace echelon {

namespace {

void plan_recursive_doubling(const AllReduceShape& c, TransferRunner& runner) {
  const Fold fold = fold_of(c.n);
  const Range all{0, c.count};
  int step = plan_fold(fold, c.index, all, 0, runner);
  if (!fold.sits_out(c.index)) {
    const int me = fold.core_index(c.index);
    for (int bit = 1; bit < fold.core; bit *= 2, ++step) {
      const int peer = fold.member(me ^ bit);
      runner.run({.to = peer, .out = all, .from = peer, .in = all, .reduce = true, .step = step});
    }
  }
  plan_unfold(fold, c.index, all, runner);
}

MemberTraffic recursive_doubling_traffic(const AllReduceShape& c) {
  const Fold fold = fold_of(c.n);
  const int exchanges = ceil_log2(fold.core);
  const int messages = fold.sits_out(c.index) ? 1 : exchanges + (c.index < 2 * fold.extra ? 1 : 0);
  return {static_cast<std::uint64_t>(messages), static_cast<std::uint64_t>(messages) * c.bytes()};
}

double recursive_doubling_seconds(double bytes, int n, const LinkCosts& l) {
  const Fold fold = fold_of(n);
  const double exchange = l.latency + bytes * (l.per_byte + l.combine_per_byte);
  return ceil_log2(fold.core) * exchange + (fold.extra > 0 ? exchange + l.latency + bytes * l.per_byte : 0);
}

}  // namespace

Algorithm recursive_doubling_all_reduce() {
  return {.name = "recursive-doubling",
          .about = "exchanges over distances 1, 2, 4, ... (Thakur, Rabenseifner and Gropp 2005)",
          .plan = plan_recursive_doubling,
          .traffic = recursive_doubling_traffic,
          .seconds = recursive_doubling_seconds};
}

}  // namespace echelon
