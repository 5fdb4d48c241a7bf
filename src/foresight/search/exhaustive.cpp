// Every strategy, one after the other: a stage goes on or another one begins, with every number of devices that is left
// and every configuration. Grows with (configurations)^layers: for a handful of layers.

#include <limits>

#include "foresight/search/search.h"

namespace echelon::foresight {

namespace {

struct ExhaustiveWalk {
  const SearchProblem& problem;
  std::vector<LayerPlace> places;
  Strategy best{{}, std::numeric_limits<double>::infinity()};

  void go_on(int used) {  // devices of all stages so far
    const std::size_t l = places.size();
    if (l == problem.layers.size()) {
      if (const double seconds = strategy_seconds(problem, places); seconds < best.seconds) best = {places, seconds};
      return;
    }
    if (l > 0)
      for (LayerPlace at : configurations(problem, l, places.back().devices())) {
        at.stage = places.back().stage;
        add(at, used);
      }
    if (l > 0 && !problem.stages) return;
    for (int devices = 1; used + devices <= problem.devices; ++devices)
      for (LayerPlace at : configurations(problem, l, devices)) {
        at.stage = l == 0 ? 0 : places.back().stage + 1;
        add(at, used + devices);
      }
  }
  void add(const LayerPlace& at, int used) {
    places.push_back(at);
    go_on(used);
    places.pop_back();
  }
};

}  // namespace

Strategy exhaustive_search(const SearchProblem& problem, const SearchOptions&) {
  ExhaustiveWalk walk{problem, {}};
  walk.go_on(0);
  return walk.best;
}

}  // namespace echelon::foresight
