#include "run/health/rank_times.h"

#include <algorithm>

#include "collective/collectives.h"

namespace echelon {

std::vector<RankSummary> gather_rank_times(Team& team, const RankTimes& mine, double waited_for_input) {
  struct Times {
    double input, compute, exchange;
    BucketWait bucket;
  };
  const auto ranks = static_cast<std::size_t>(team.world().size());
  const bool first = team.world().rank() == 0;
  // Of each rank, for each rank: too much for everybody to have in a world of thousands.
  std::vector<double> own(ranks), waits(first ? ranks * ranks : 0);
  std::ranges::copy(mine.waiting_for, own.begin());
  if (ranks > 1)
    gather(team.group(), const_typed_span(std::as_bytes(std::span(own))),
           typed_span(std::as_writable_bytes(std::span(waits))), 0, "waiting times");
  else
    waits = own;
  std::vector<RankSummary> all;
  std::span<const double> rest = waits;
  for (const Times& t : team.all_gather_struct(Times{waited_for_input, mine.compute, mine.exchange, mine.bucket})) {
    if (!first) break;
    all.push_back({.input = t.input,
                   .times = {.compute = t.compute,
                             .exchange = t.exchange,
                             .waiting_for = {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(ranks)},
                             .bucket = t.bucket}});
    rest = rest.subspan(ranks);
  }
  return all;
}

}  // namespace echelon
