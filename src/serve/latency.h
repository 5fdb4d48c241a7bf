#pragma once
// How long requests took: counts in buckets that grow by a tenth, from a microsecond to some minutes, so that a
// percentile is known to ten per cent whatever the load. Thread-safe, allocates nothing, never waits.

#include <array>
#include <atomic>
#include <cstdint>

namespace echelon::serve {

class Latency {
 public:
  void add(double seconds);
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  double sum() const { return static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9; }
  // The upper end of the bucket in which the given share (0 to 1) of all requests is reached; 0 if there was none.
  double percentile(double share) const;

 private:
  static constexpr std::size_t buckets = 200;
  std::array<std::atomic<std::uint64_t>, buckets> in_{};
  std::atomic<std::uint64_t> count_{0}, nanoseconds_{0};
};

}  // namespace echelon::serve
