#include "parallel/server/counts.h"

#include <algorithm>

#include "collective/collectives.h"

namespace echelon::exchanges {

void add_counts(ServerCounts& sum, const ServerCounts& more) {
  sum.updates += more.updates, sum.contributions += more.contributions, sum.staleness += more.staleness;
  sum.dropped += more.dropped, sum.waited += more.waited, sum.steps += more.steps;
  sum.done += more.done, sum.age += more.age, sum.out_of_order += more.out_of_order;
  sum.site_barriers += more.site_barriers, sum.site_lead = std::max(sum.site_lead, more.site_lead);
  sum.lead = std::max(sum.lead, more.lead), sum.moved = std::max(sum.moved, more.moved);
  sum.least_speed = std::min(sum.least_speed, more.least_speed);
}

ServerCounts counts_of_all(const ExchangeParts& parts, const ServerCounts& own) {
  if (parts.workers() == 1) return own;
  ServerCounts all;
  for (const ServerCounts& counts : all_gather_struct(parts.team->group(), own, "counts")) add_counts(all, counts);
  return all;
}

}  // namespace echelon::exchanges
