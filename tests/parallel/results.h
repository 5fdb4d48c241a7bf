#pragma once
// What tests of several systems ask of their results, and the text of the composition that many of them are about.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/parallel/systems.h"

namespace echelon::test {

// Infinite if they are not even of the same size.
inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

inline double bytes_of(const std::vector<SystemResult>& ranks) {
  double bytes = 0;
  for (const SystemResult& r : ranks) bytes += static_cast<double>(r.sent.bytes);
  return bytes;
}

// Gradients to servers with these settings (lines of the exchange's table).
inline std::string gradients_to_servers(const std::string& settings, const std::string& sync) {
  return fmt::format("[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n{}\n[sync]\nname = '{}'\n", settings,
                     sync);
}

}  // namespace echelon::test
