// Gradients of fully connected layers travel as their two factors, all others whole (sufficient factor broadcasting;
// Poseidon's HybComm chooses by size; Project Adam sends factors to the layer's owner, who does the product).

#include "parallel/exchanges/factors.h"

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/shard_sum.h"
#include "data/cursor.h"
#include "kernels/gemm.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

bool factors_are_smaller(const ThinProduct& p, std::size_t samples, int workers, FactorSettings::To to) {
  const std::size_t factors = samples * p.rows * (p.in + p.out);
  const std::size_t times = to == FactorSettings::To::all ? 2 : static_cast<std::size_t>(workers);
  return factors < times * p.in * p.out;  // both sides times (n - 1), or (n - 1) / n
}

std::size_t samples_of(Rank rank, int workers, std::size_t batch) {
  return data::shard_slice({0, batch}, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(workers)).count;
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

std::vector<Range> owners_of_parameters(std::span<const std::size_t> offsets, std::size_t floats, int workers) {
  std::vector<Range> ranges;
  std::size_t at = 0, next = 0;
  for (int r = 0; r < workers; ++r) {
    const double goal = static_cast<double>(floats) * static_cast<double>(r + 1) / static_cast<double>(workers);
    std::size_t end = at;
    for (; next < offsets.size(); ++next) {  // as long as that comes nearer to an even share
      const std::size_t after = next + 1 < offsets.size() ? offsets[next + 1] : floats;
      if (r + 1 < workers && static_cast<double>(after) - goal > goal - static_cast<double>(end)) break;
      end = after;
    }
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

namespace {

class Kind : public ExchangeKind {
 public:
  explicit Kind(const FactorSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = true, .sums = true, .gradients = true, .plain_numbers = true};
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return settings_.to == FactorSettings::To::all ? make_factor_broadcast(settings_, std::move(parts))
                                                   : make_factor_owners(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return settings_.to == FactorSettings::To::all
               ? "(n-1) 4 B (in + out) / n a worker for a layer that goes as factors, B samples in all; 2 (n-1) 4 F / "
                 "n for the other F numbers"
               : "4 B (in + out) / n a worker to the owner of a layer that goes as factors, 4 F for the other F "
                 "numbers, less what it owns; (n-1) 4 F / n of answers";
  }
  Traffic traffic(const Case& c) const override {
    if (settings_.to == FactorSettings::To::owners) return owners_traffic(c);
    const bool overlaps = c.order.kind != Order::Kind::whole && !c.portions.empty();
    Traffic sum;
    for (const Range& r : overlaps ? c.portions : std::vector<Range>{{0, c.floats}}) {
      std::size_t whole = r.count();
      const double n = c.workers;
      for (const ThinProduct& p : c.products) {
        if (!is_within(p.range, r) || !as_factors(p, c)) continue;
        sum = sum + Traffic{n * (n - 1), 4 * (n - 1) * static_cast<double>(c.batch * p.rows * (p.in + p.out))};
        whole -= p.range.count();
      }
      for (int i = 0; i < c.workers && whole > 0; ++i) {
        const echelon::Traffic sent = owners_shard_traffic(i, c.workers, c.workers, whole);
        sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
      }
    }
    return sum;
  }

 private:
  static bool is_within(Range inner, Range outer) { return inner.begin >= outer.begin && inner.end <= outer.end; }
  bool as_factors(const ThinProduct& p, const Case& c) const {
    return !settings_.hybrid || factors_are_smaller(p, c.batch, c.workers, settings_.to);
  }
  Traffic owners_traffic(const Case& c) const {
    const double n = c.workers;
    Traffic sum{2 * n * (n - 1), 4 * (n - 1) * static_cast<double>(c.floats)};  // with the answers
    const std::vector<Range> owned = owners_of_parameters(c.offsets, c.floats, c.workers);
    for (Rank owner = 0; owner < c.workers; ++owner) {
      const Range r = owned[static_cast<std::size_t>(owner)];
      std::size_t whole = r.count();
      for (const ThinProduct& p : c.products) {
        if (!is_within(p.range, r) || !as_factors(p, c)) continue;
        whole -= p.range.count();
        const std::size_t samples = c.batch - samples_of(owner, c.workers, c.batch);
        sum.bytes += 4 * static_cast<double>(samples * p.rows * (p.in + p.out));
      }
      sum.bytes += 4 * (n - 1) * static_cast<double>(whole);
    }
    return sum;
  }

  FactorSettings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> factors(OptionReader& options) {
  FactorSettings s;
  s.hybrid = options.flag("hybrid", false);
  if (options.choice("to", "all", {"all", "owners"}) == "owners") s.to = FactorSettings::To::owners;
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
