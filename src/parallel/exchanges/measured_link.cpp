#include "parallel/exchanges/measured_link.h"

#include <algorithm>

#include "collective/collectives.h"

namespace echelon::exchanges {

MeasuredLink measure_link(const ExchangeParts& parts) {
  const auto n = static_cast<std::size_t>(parts.workers());
  const std::size_t each = std::max<std::size_t>((1 << 20) / n, 4096);
  Buffer out(n * each), in(n * each);
  Group& group = parts.team->group();
  const auto seconds_of = [&](std::size_t bytes) {
    double seconds = 0;
    for (int i = 0; i < 2; ++i) {  // the first one warms up
      barrier(group, "measuring the link");
      const double begin = parts.world->now();
      all_to_all(group, const_typed_span(std::span<const std::byte>(out.as<std::byte>().first(n * bytes))),
                 typed_span(in.as<std::byte>().first(n * bytes)), "measuring the link");
      seconds = parts.world->now() - begin;
    }
    return std::max(seconds, 1e-9);
  };
  const double most = seconds_of(each), least = seconds_of(1);
  MeasuredLink own{.bandwidth = static_cast<double>((n - 1) * each) / most, .latency = least};
  for (const MeasuredLink& link : parts.team->all_gather_struct(own))
    own.bandwidth = std::min(own.bandwidth, link.bandwidth), own.latency = std::max(own.latency, link.latency);
  return own;
}

}  // namespace echelon::exchanges
