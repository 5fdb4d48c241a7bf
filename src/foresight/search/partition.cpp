// PipeDream's partition (Narayanan et al., SOSP 2019): neighbouring layers become stages, and a stage may have
// replicas. The time of a batch in a full pipeline is that of the slowest stage or link, so: the best for the first j
// layers on the first w devices is the best for fewer of both, and one more stage. PipeDream solves this level by level
// of the hierarchy of links, each level with equal groups of the one below. Here devices stand in the order of the
// hierarchy and a stage takes any neighbours; which link they share is looked up (SearchProblem::between). That takes
// layers^2 * devices^2 steps, finds the best of all such partitions, and stages need not end where a machine does.

#include <algorithm>
#include <limits>

#include "foresight/search/search.h"

namespace echelon::foresight {

Strategy partition_search(const SearchProblem& p, const SearchOptions&) {
  const std::size_t n = p.layers.size();
  const auto devices = static_cast<std::size_t>(p.devices);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  // best[j][w][r]: the first j layers on exactly w devices, where the last stage has r replicas: what the border to the
  // next stage costs depends on them.
  struct Reached {
    double seconds = infinite;
    std::size_t layer = 0, replicas = 0;  // where the last stage begins, and the replicas of the one before
  };
  const auto at = [&](std::size_t j, std::size_t w, std::size_t r) {
    return (j * (devices + 1) + w) * (devices + 1) + r;
  };
  std::vector<Reached> best((n + 1) * (devices + 1) * (devices + 1));
  best[at(0, 0, 0)].seconds = 0;
  for (std::size_t j = 1; j <= n; ++j)
    for (std::size_t w = 1; w <= devices; ++w)
      for (std::size_t r = 1; r <= w; ++r) {
        const LayerPlace own{.replicas = static_cast<int>(r)};
        const int first = static_cast<int>(w - r);
        double stage = 0;
        for (std::size_t i = j; i-- > 0;) {  // the last stage has the layers [i, j)
          stage += layer_seconds(p, i, own, first);
          if (i == 0) {
            if (w == r && stage < best[at(j, w, r)].seconds) best[at(j, w, r)] = {stage, 0, 0};
            break;
          }
          if (!p.stages) continue;
          for (std::size_t before = 1; before <= w - r; ++before) {
            const Reached& so_far = best[at(i, w - r, before)];
            if (so_far.seconds == infinite) continue;
            const double border = border_seconds(p, i - 1, {.replicas = static_cast<int>(before)}, own, first);
            const double seconds = std::max({so_far.seconds, stage, border});
            if (seconds < best[at(j, w, r)].seconds) best[at(j, w, r)] = {seconds, i, before};
          }
        }
      }
  Strategy found{std::vector<LayerPlace>(n), infinite};
  std::size_t w = 0, r = 0;
  for (std::size_t ww = 1; ww <= devices; ++ww)
    for (std::size_t rr = 1; rr <= ww; ++rr)
      if (best[at(n, ww, rr)].seconds < found.seconds) found.seconds = best[at(n, ww, rr)].seconds, w = ww, r = rr;
  std::vector<std::pair<std::size_t, std::size_t>> stages;  // from the last: where it begins, and its replicas
  for (std::size_t j = n; j > 0;) {
    const Reached& here = best[at(j, w, r)];
    stages.emplace_back(here.layer, r);
    j = here.layer, w -= r, r = here.replicas;
  }
  std::ranges::reverse(stages);
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (std::size_t l = stages[s].first; l < (s + 1 < stages.size() ? stages[s + 1].first : n); ++l)
      found.layers[l] = {.stage = static_cast<int>(s), .replicas = static_cast<int>(stages[s].second)};
  return found;
}

}  // namespace echelon::foresight
