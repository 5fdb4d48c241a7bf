// A beam over the whole space, stages and configurations together: strategies grow layer by layer, and after each layer
// the `width` most promising beginnings are kept. A beginning is judged by the slowest stage so far, the one under way,
// and what the layers that are left would take on the devices that are left, at best. Of beginnings that end alike (the
// same stage under way on the same devices) only the best is kept.

#include <algorithm>
#include <limits>
#include <map>

#include "foresight/search/search.h"

namespace echelon::foresight {

namespace {

struct Beginning {
  std::vector<LayerPlace> places;
  double slowest = 0, stage = 0;  // finished stages and links; the stage under way
  int first = 0;                  // device of the stage under way
  double promise = 0;

  int used() const { return first + places.back().devices(); }
};

}  // namespace

Strategy beam_search(const SearchProblem& p, const SearchOptions& options) {
  const std::size_t n = p.layers.size();
  if (n == 0) return {};
  std::vector<double> rest(n + 1);  // seconds of the layers from there on, on one device
  for (std::size_t l = n; l-- > 0;) rest[l] = rest[l + 1] + p.layers[l].seconds;
  const auto judge = [&](Beginning& b) {
    const int left = p.devices - b.used();
    const double shared =
        (b.stage * b.places.back().devices() + rest[b.places.size()]) / (b.places.back().devices() + left);
    b.promise = std::max({b.slowest, b.stage, shared});
  };
  std::vector<Beginning> beam;
  for (int devices = 1; devices <= p.devices; ++devices)
    for (const LayerPlace& at : configurations(p, 0, devices)) {
      beam.push_back({.places = {at}, .stage = layer_seconds(p, 0, at, 0)});
      judge(beam.back());
    }
  for (std::size_t l = 1; l < n; ++l) {
    std::map<std::tuple<int, int, int, int>, Beginning> alike;  // first device, devices, replicas, stages
    const auto keep = [&](Beginning next) {
      judge(next);
      const LayerPlace& last = next.places.back();
      // Two that end alike differ in what is finished and in what is under way: the better promise counts.
      auto [it, is_new] = alike.try_emplace({next.first, last.devices(), last.replicas, last.stage}, next);
      if (!is_new && next.promise + next.stage * 1e-6 < it->second.promise + it->second.stage * 1e-6)
        it->second = std::move(next);
    };
    for (const Beginning& b : beam) {
      const LayerPlace& before = b.places.back();
      for (LayerPlace at : configurations(p, l, before.devices())) {
        at.stage = before.stage;
        Beginning next = b;
        next.stage += transfer_seconds(p, l - 1, before, at, b.first) + layer_seconds(p, l, at, b.first);
        next.places.push_back(at);
        keep(std::move(next));
      }
      if (!p.stages) continue;
      for (int devices = 1; b.used() + devices <= p.devices; ++devices)
        for (LayerPlace at : configurations(p, l, devices)) {
          at.stage = before.stage + 1;
          Beginning next = b;
          next.first = b.used();
          next.slowest = std::max({b.slowest, b.stage, border_seconds(p, l - 1, before, at, next.first)});
          next.stage = layer_seconds(p, l, at, next.first);
          next.places.push_back(at);
          keep(std::move(next));
        }
    }
    beam.clear();
    for (auto& [key, b] : alike) beam.push_back(std::move(b));
    std::ranges::stable_sort(beam, {}, &Beginning::promise);
    if (beam.size() > static_cast<std::size_t>(options.width)) beam.resize(static_cast<std::size_t>(options.width));
  }
  Strategy best{{}, std::numeric_limits<double>::infinity()};
  for (const Beginning& b : beam)
    if (const double seconds = std::max(b.slowest, b.stage); seconds < best.seconds) best = {b.places, seconds};
  return best;
}

}  // namespace echelon::foresight
