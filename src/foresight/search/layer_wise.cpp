// Layer-wise parallelism (Jia, Lin, Qi and Aiken, "Exploring hidden dimensions in accelerating convolutional neural
// networks", ICML 2018): all layers run on all devices, each with a configuration of its own. The time of a step is a
// sum over layers and over neighbours, so the best configuration of a chain is found by dynamic programming: for every
// configuration of a layer the best way to get there. Exact for chains.

#include <limits>

#include "foresight/search/search.h"

namespace echelon::foresight {

Strategy layer_wise_search(const SearchProblem& p, const SearchOptions&) {
  const std::size_t n = p.layers.size();
  struct Reached {
    double seconds = std::numeric_limits<double>::infinity();
    std::size_t before = 0;
  };
  std::vector<std::vector<LayerPlace>> choices(n);
  std::vector<std::vector<Reached>> best(n);
  for (std::size_t l = 0; l < n; ++l) {
    choices[l] = configurations(p, l, p.devices);
    best[l].resize(choices[l].size());
    for (std::size_t c = 0; c < choices[l].size(); ++c) {
      const double own = layer_seconds(p, l, choices[l][c], 0);
      if (l == 0) {
        best[l][c] = {own, 0};
        continue;
      }
      for (std::size_t b = 0; b < choices[l - 1].size(); ++b) {
        const double seconds =
            best[l - 1][b].seconds + transfer_seconds(p, l - 1, choices[l - 1][b], choices[l][c], 0) + own;
        if (seconds < best[l][c].seconds) best[l][c] = {seconds, b};
      }
    }
  }
  Strategy found{std::vector<LayerPlace>(n), std::numeric_limits<double>::infinity()};
  if (n == 0) return {{}, 0};
  std::size_t at = 0;
  for (std::size_t c = 0; c < best[n - 1].size(); ++c)
    if (best[n - 1][c].seconds < found.seconds) found.seconds = best[n - 1][c].seconds, at = c;
  for (std::size_t l = n; l-- > 0;) {
    found.layers[l] = choices[l][at];
    at = best[l][at].before;
  }
  return found;
}

}  // namespace echelon::foresight
