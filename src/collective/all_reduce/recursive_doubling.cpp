// Recursive doubling (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005): in step k members at distance 2^k exchange all
// they have. The fewest steps; log2 n times the bytes. If n is no power of two, some members hand their numbers to a
// neighbour first and get the result at the end.
//   messages log2 n (or 1, or 1 + log2 n)    bytes the same times B    time ceil(log2 n) (a + B b + B c)

#include <bit>

#include "collective/algorithms.h"
#include "collective/fold.h"
#include "collective/shard_tree.h"

namespace echelon {

namespace {

void plan(const TrafficQuery& c, Mover& mover) {
  const Fold fold = fold_of(c.n);
  const Range all{0, c.count};
  int step = plan_fold(fold, c.index, all, 0, mover);
  if (!fold.sits_out(c.index)) {
    const int me = fold.core_index(c.index);
    for (int bit = 1; bit < fold.core; bit *= 2, ++step) {
      const int peer = fold.member(me ^ bit);
      mover.move({.to = peer, .out = all, .from = peer, .in = all, .reduce = true, .step = step});
    }
  }
  plan_unfold(fold, c.index, all, mover);
}

Traffic traffic(const TrafficQuery& c) {
  const Fold fold = fold_of(c.n);
  const int exchanges = ceil_log2(fold.core);
  const int messages = fold.sits_out(c.index) ? 1 : exchanges + (c.index < 2 * fold.extra ? 1 : 0);
  return {static_cast<std::uint64_t>(messages), static_cast<std::uint64_t>(messages) * c.bytes()};
}

double seconds(double bytes, int n, const Link& l) {
  const Fold fold = fold_of(n);
  const double exchange = l.latency + bytes * (l.per_byte + l.combine_per_byte);
  return ceil_log2(fold.core) * exchange + (fold.extra > 0 ? exchange + l.latency + bytes * l.per_byte : 0);
}

// Where its tree over the members is the upper part of the tree over the shards.
bool fixed_tree(int n, int shards) {
  if (!std::has_single_bit(static_cast<unsigned>(n)) || shards < n) return false;
  const auto first = [&](int member) { return static_cast<int>(std::int64_t{member} * shards / n); };
  for (int block = 1; block <= n; block *= 2)
    for (int m = 0; m < n; m += block)
      if (!is_tree_node(shards, first(m), first(m + block))) return false;
  return true;
}

}  // namespace

const Algorithm recursive_doubling_all_reduce{
    .name = "recursive-doubling",
    .about = "exchanges over distances 1, 2, 4, ... (Thakur, Rabenseifner and Gropp 2005)",
    .plan = plan,
    .traffic = traffic,
    .seconds = seconds,
    .fixed_tree = fixed_tree};

}  // namespace echelon
