#include "serve/latency.h"

#include <algorithm>
#include <cmath>

namespace echelon::serve {
namespace {

constexpr double first_bucket = 1e-6, bucket_growth = 1.1;

}  // namespace

void Latency::add(double seconds) {
  const double steps = std::log(std::max(seconds, first_bucket) / first_bucket) / std::log(bucket_growth);
  const auto bucket = static_cast<std::size_t>(std::clamp(steps, 0.0, static_cast<double>(buckets - 1)));
  in_[bucket].fetch_add(1, std::memory_order_relaxed);
  count_.fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(std::max(0.0, seconds) * 1e9), std::memory_order_relaxed);
}

double Latency::percentile(double share) const {
  std::uint64_t all = 0;
  for (const auto& n : in_) all += n.load(std::memory_order_relaxed);
  if (all == 0) return 0;
  const double wanted = share * static_cast<double>(all);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets; ++i) {
    seen += in_[i].load(std::memory_order_relaxed);
    if (static_cast<double>(seen) >= wanted) return first_bucket * std::pow(bucket_growth, static_cast<double>(i + 1));
  }
  return first_bucket * std::pow(bucket_growth, static_cast<double>(buckets));
}

}  // namespace echelon::serve
