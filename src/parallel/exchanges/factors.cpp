// Gradients of fully connected layers travel as their two factors, all others whole (sufficient factor broadcasting;
// Poseidon's HybComm chooses by size, and has parameter servers for what goes whole).

#include "parallel/exchanges/factors.h"
#include "parallel/composition.h"

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/shard_sum.h"
#include "data/cursor.h"
#include "kernels/gemm/gemm.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

bool factors_are_smaller_for_all(const ThinProduct& p, std::size_t samples) {
  return samples * p.rows * (p.in + p.out) < 2 * p.in * p.out;  // both sides times n - 1
}

std::size_t samples_of(Rank rank, int workers, std::size_t batch) {
  return data::shard_samples({0, batch}, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(workers)).count;
}

void multiply_factors(const ThinProduct& p, std::span<const FactorRows> rows, const float* values, float* out,
                      Buffer& scratch) {
  const auto m = static_cast<std::int64_t>(p.out), n = static_cast<std::int64_t>(p.in);
  float beta = 0;
  for (const FactorRows& r : rows) {
    if (r.rows == 0) continue;
    const kernels::Gemm product{
        .trans_a = true, .m = m, .n = n, .k = static_cast<std::int64_t>(r.rows), .alpha = 1, .beta = beta};
    if (const std::size_t needed = kernels::gemm_scratch(product); scratch.bytes() < needed) scratch = Buffer(needed);
    kernels::gemm(product, values + r.errors, m, values + r.inputs, n, out, n, scratch.data());
    beta = 1;
  }
  if (beta == 0) std::fill_n(out, p.range.count(), 0.0f);
}

namespace {

class FactorsKind : public ExchangeKind {
 public:
  explicit FactorsKind(const FactorSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = true, .sums = true, .plain_numbers = true, .sends_early = true};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse(
        problems, !c.rule->traits().gradient_itself,
        fmt::format("exchange factors sends the factors of gradients, but rule {} exchanges something else: take rule "
                    "grad_mean, or exchange all_reduce",
                    c.rule_name));
    refuse(
        problems, settings_.servers && c.rule->traits().local_step,
        fmt::format("exchange.servers take the step for what goes whole, and with rule {} every worker takes its own: "
                    "take rule grad_push, or leave out exchange.servers",
                    c.rule_name));
    refuse(problems, facts.split,
           "exchange factors sends inputs and errors of a layer, and the micro-batches of a split replica have them at "
           "different times: take exchange all_reduce, or leave out --plan");
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return make_factor_broadcast(settings_, std::move(parts));
  }
  std::string messages_text() const override {
    return "n (n-1) for a layer that goes as factors; 2 n (n-1) for each bucket with something that goes whole";
  }
  std::string traffic_text() const override {
    return "(n-1) 4 B (in + out) / n a worker for a layer that goes as factors, B samples in all; 2 (n-1) 4 F / n for "
           "the other F numbers, to their owners or servers and back";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const bool overlaps = c.order.is_early && !c.buckets.empty();
    Traffic sum;
    for (const Range& r : overlaps ? c.buckets : std::vector<Range>{{0, c.floats}}) {
      std::size_t whole = r.count();
      const double n = c.workers;
      for (const ThinProduct& p : c.products) {
        if (!is_within(p.range, r) || !as_factors(p, c)) continue;
        sum = sum + Traffic{n * (n - 1), 4 * (n - 1) * static_cast<double>(c.batch * p.rows * (p.in + p.out))};
        whole -= p.range.count();
      }
      for (int i = 0; i < c.workers && whole > 0; ++i) {
        const MemberTraffic sent = shard_sum_traffic(i, c.workers, c.workers, whole);
        sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
      }
    }
    return sum;
  }

 private:
  static bool is_within(Range inner, Range outer) { return inner.begin >= outer.begin && inner.end <= outer.end; }
  bool as_factors(const ThinProduct& p, const TrafficQuery& c) const {
    return !settings_.hybrid || factors_are_smaller_for_all(p, c.batch);
  }

  FactorSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_factors(OptionReader& options) {
  FactorSettings s;
  s.hybrid = options.flag("hybrid", false);
  s.servers = options.flag("servers", false);
  return std::make_unique<FactorsKind>(s);
}

}  // namespace

ExchangePart factors() {
  return {{"factors",
           "the factors u, v of fully connected gradients go to all; the product is made locally",
           {{"hybrid", "false", "for each layer whichever is smaller: factors or the whole"},
            {"servers", "false", "what goes whole goes to servers, one on each worker, which take the step"}}},
          make_factors};
}

}  // namespace echelon::exchanges
