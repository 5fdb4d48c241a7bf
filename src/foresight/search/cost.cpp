#include <algorithm>

#include "base/error.h"
#include "foresight/search/search.h"

namespace echelon::foresight {

const LinkLevel& SearchProblem::between(int first, int last) const {
  for (const LinkLevel& level : links)
    if (first / level.devices == (last - 1) / level.devices) return level;
  return links.back();
}

// Computing, and the sum of the replicas' gradients (reduce-scatter and all-gather).
double layer_seconds(const SearchProblem& p, std::size_t l, const LayerPlace& at, int first) {
  const SearchLayer& layer = p.layers[l];
  const double computing = layer.seconds / (at.replicas * (layer.splits ? at.parts : 1));
  if (at.replicas == 1 || layer.weight_bytes == 0) return computing;
  const LinkLevel& link = p.between(first, first + at.devices());
  const double bytes = layer.weight_bytes / (layer.splits ? at.parts : 1), d = at.replicas;
  return computing + 2 * link.latency + 2 * bytes * (d - 1) / d * link.per_byte;
}

// What a device has to get of the outputs before it: all that its samples need, less what it has computed itself. The
// same goes back.
double transfer_seconds(const SearchProblem& p, std::size_t l, const LayerPlace& from, const LayerPlace& to,
                        int first) {
  const double out = p.layers[l].out_bytes;
  const double need = out / to.replicas;
  // Of the samples that both have, a part of the features.
  const double have = out / std::max(from.replicas, to.replicas) / (p.layers[l].splits ? from.parts : 1);
  const double missing = need - std::min(need, have);
  if (missing <= 0) return 0;
  const LinkLevel& link = p.between(first, first + std::max(from.devices(), to.devices()));
  return 2 * (link.latency + missing * link.per_byte);
}

double border_seconds(const SearchProblem& p, std::size_t l, const LayerPlace& from, const LayerPlace& to, int next) {
  const LinkLevel& link = p.between(next - 1, next + 1);
  // Replicas send side by side; a link carries what one of the fewer ends has.
  const int pairs = std::min(from.replicas, to.replicas);
  return 2 * (link.latency + p.layers[l].out_bytes / pairs * link.per_byte);
}

double strategy_seconds(const SearchProblem& p, const std::vector<LayerPlace>& places) {
  double slowest = 0, stage = 0;
  int first = 0;
  for (std::size_t l = 0; l < places.size(); ++l) {
    stage += layer_seconds(p, l, places[l], first);
    if (l + 1 == places.size()) break;
    if (places[l + 1].stage == places[l].stage) {
      stage += transfer_seconds(p, l, places[l], places[l + 1], first);
      continue;
    }
    first += places[l].devices();
    slowest = std::max({slowest, stage, border_seconds(p, l, places[l], places[l + 1], first)});
    stage = 0;
  }
  return std::max(slowest, stage);
}

bool is_valid(const SearchProblem& p, const std::vector<LayerPlace>& places) {
  if (places.size() != p.layers.size() || places.empty() || places.front().stage != 0) return false;
  int used = places.front().devices();
  for (std::size_t l = 0; l < places.size(); ++l) {
    const LayerPlace& at = places[l];
    if (at.replicas < 1 || at.parts < 1 || (at.parts > 1 && !p.parts)) return false;
    if (l == 0) continue;
    const LayerPlace& before = places[l - 1];
    if (at.stage == before.stage) {
      if (at.devices() != before.devices()) return false;
    } else {
      if (at.stage != before.stage + 1 || !p.stages) return false;
      used += at.devices();
    }
  }
  return used <= p.devices;
}

std::vector<LayerPlace> configurations(const SearchProblem& p, std::size_t, int devices) {
  std::vector<LayerPlace> all;
  for (int parts = 1; parts <= (p.parts ? devices : 1); ++parts)
    if (devices % parts == 0 && (p.mixed || parts == 1 || parts == devices))
      all.push_back({.replicas = devices / parts, .parts = parts});
  return all;
}

const std::vector<SearchKind>& searches() {
  static const std::vector<SearchKind> table{
      {"exhaustive", "every strategy", exhaustive_search},
      {"layer_wise", "dynamic programming over neighbouring layers' configurations (Jia et al. 2018)",
       layer_wise_search},
      {"partition", "dynamic programming over stages and replicas on a hierarchy of links (PipeDream 2019)",
       partition_search},
      {"markov", "a random walk with incremental re-simulation (FlexFlow 2019)", markov_search},
      {"beam", "the most promising beginnings, layer by layer", beam_search}};
  return table;
}

const SearchKind* find_search(std::string_view name) {
  const auto it = std::ranges::find(searches(), name, &SearchKind::name);
  return it == searches().end() ? nullptr : &*it;
}

}  // namespace echelon::foresight
