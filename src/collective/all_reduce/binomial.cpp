// Binomial tree: up to member 0, then down again. Few steps, but the root handles all data log2 n times: for data that
// fits into a message or two.
//   steps 2 ceil(log2 n)    messages (children + 1 parent)    bytes the same times B
//   time 2 ceil(log2 n) (a + B b) + ceil(log2 n) B c

#include "collective/algorithms.h"
#include "collective/transfers/plans.h"

namespace echelon {

namespace {

void plan_binomial(const AllReduceShape& c, TransferRunner& runner) {
  const int step = plan_binomial_reduce(c.n, c.index, 0, {0, c.count}, 0, runner);
  plan_binomial_broadcast(c.n, c.index, 0, {0, c.count}, step, runner);
}

MemberTraffic binomial_traffic(const AllReduceShape& c) {
  std::uint64_t messages = c.index > 0 ? 1 : 0;
  for (int bit = binomial_span(c.index, c.n); bit > 0; bit /= 2) messages += c.index + bit < c.n ? 1 : 0;
  return {messages, messages * c.bytes()};
}

double binomial_seconds(double bytes, int n, const LinkCosts& l) {
  return ceil_log2(n) * (2 * (l.latency + bytes * l.per_byte) + bytes * l.combine_per_byte);
}

}  // namespace

Algorithm binomial_all_reduce() {
  return {.name = "binomial",
          .about = "up and down a binomial tree (Thakur, Rabenseifner and Gropp 2005)",
          .plan = plan_binomial,
          .traffic = binomial_traffic,
          .seconds = binomial_seconds};
}

}  // namespace echelon
