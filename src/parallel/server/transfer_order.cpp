#include "parallel/server/transfer_order.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "parallel/exchanges/measured_link.h"

namespace echelon::exchanges {

namespace {

using RangeBits = std::vector<std::uint64_t>;  // a bit for each range

struct TimedTransfer {
  double seconds = 0;
  double starts = 0;      // seconds of computing that wait for it alone
  double least_with = 0;  // seconds of the shortest transfers, itself among them, that let something further begin
};

// a first lets min(P_b, M_a) more of the time pass unused than b first does with min(P_a, M_b).
bool goes_before(const TimedTransfer& a, const TimedTransfer& b) {
  const double idle = std::min(b.starts, a.seconds), other = std::min(a.starts, b.seconds);
  return idle != other ? idle < other : a.least_with < b.least_with;
}

std::vector<RangeBits> needed_ranges(const std::vector<ForwardNode>& nodes, const std::vector<Range>& ranges) {
  std::vector<RangeBits> of(nodes.size(), RangeBits((ranges.size() + 63) / 64));
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const std::size_t before : nodes[n].after)
      for (std::size_t w = 0; w < of[n].size(); ++w) of[n][w] |= of[before][w];
    for (const Range& r : nodes[n].reads) {
      const auto i = static_cast<std::size_t>(std::ranges::find(ranges, r.begin, &Range::begin) - ranges.begin());
      of[n][i / 64] |= std::uint64_t{1} << i % 64;
    }
  }
  return of;
}

template <typename F>
void for_each_bit(const RangeBits& bits, const RangeBits& among, const F& f) {
  for (std::size_t w = 0; w < bits.size(); ++w)
    for (std::uint64_t rest = bits[w] & among[w]; rest != 0; rest &= rest - 1)
      f(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
}

}  // namespace

std::vector<Range> order_by_times(const std::vector<ForwardNode>& nodes, const std::function<double(Range)>& transfer) {
  std::vector<Range> ranges;
  for (const ForwardNode& node : nodes)
    for (const Range& r : node.reads)
      if (std::ranges::find(ranges, r.begin, &Range::begin) == ranges.end()) ranges.push_back(r);
  const std::vector<RangeBits> needs = needed_ranges(nodes, ranges);
  std::vector<TimedTransfer> transfers;
  for (const Range& r : ranges) transfers.push_back({.seconds = transfer(r)});
  RangeBits outstanding((ranges.size() + 63) / 64);
  for (std::size_t i = 0; i < ranges.size(); ++i) outstanding[i / 64] |= std::uint64_t{1} << i % 64;

  std::vector<Range> order;
  while (order.size() < ranges.size()) {
    for (TimedTransfer& t : transfers) t.starts = 0, t.least_with = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      double seconds = 0;
      int count = 0;
      for_each_bit(needs[n], outstanding, [&](std::size_t i) { seconds += transfers[i].seconds, ++count; });
      for_each_bit(needs[n], outstanding, [&](std::size_t i) {
        if (count == 1)
          transfers[i].starts += nodes[n].seconds;
        else
          transfers[i].least_with = std::min(transfers[i].least_with, seconds);
      });
    }
    std::size_t best = ranges.size();
    for_each_bit(outstanding, outstanding, [&](std::size_t i) {
      if (best == ranges.size() || goes_before(transfers[i], transfers[best])) best = i;
    });
    order.push_back(ranges[best]);
    outstanding[best / 64] &= ~(std::uint64_t{1} << best % 64);
  }
  return order;
}

std::vector<Range> measured_order(const ExchangeParts& parts) {
  std::vector<Range> graph_order = parts.trainer->reading_order();
  if (parts.workers() == 1) return graph_order;
  const MeasuredLink link = measure_link(parts);
  std::vector<std::uint64_t> begins(graph_order.size());
  if (parts.rank() == 0) {
    const auto seconds = [&](Range r) {
      return link.latency + static_cast<double>(r.count() * sizeof(float)) / link.bandwidth;
    };
    const std::vector<Range> order = order_by_times(parts.trainer->time_forward(), seconds);
    std::ranges::transform(order, begins.begin(), [](Range r) { return r.begin; });
  }
  parts.team->broadcast(std::as_writable_bytes(std::span(begins)));
  std::vector<Range> order;
  for (const std::uint64_t begin : begins) order.push_back(*std::ranges::find(graph_order, begin, &Range::begin));
  return order;
}

}  // namespace echelon::exchanges
