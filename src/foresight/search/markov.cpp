// FlexFlow's search (Jia, Zaharia and Aiken, MLSys 2019): a Markov chain over strategies. A proposal gives one layer
// another configuration; a better strategy is taken, a worse one with probability exp(-b * how much worse). What a
// proposal changes is the layer's own term and those of its two neighbours, so only these are computed again. All
// layers run on all devices; stages are beam's and partition's.

#include <cmath>

#include "base/random.h"
#include "foresight/search/markov.h"

namespace echelon::foresight {

MarkovWalk::MarkovWalk(const SearchProblem& problem) : problem_(problem) {
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    choices_.push_back(configurations(problem, l, problem.devices));
    places_.push_back(choices_.back().front());
    own_.push_back(layer_seconds(problem, l, places_[l], 0));
  }
  for (std::size_t l = 0; l + 1 < places_.size(); ++l)
    to_next_.push_back(transfer_seconds(problem, l, places_[l], places_[l + 1], 0));
  for (const double s : own_) seconds_ += s;
  for (const double s : to_next_) seconds_ += s;
}

double MarkovWalk::with(std::size_t l, const LayerPlace& place) const {
  double seconds = seconds_ - own_[l] + layer_seconds(problem_, l, place, 0);
  if (l > 0) seconds += transfer_seconds(problem_, l - 1, places_[l - 1], place, 0) - to_next_[l - 1];
  if (l + 1 < places_.size()) seconds += transfer_seconds(problem_, l, place, places_[l + 1], 0) - to_next_[l];
  return seconds;
}

void MarkovWalk::take(std::size_t l, const LayerPlace& place) {
  seconds_ = with(l, place);
  places_[l] = place;
  own_[l] = layer_seconds(problem_, l, place, 0);
  if (l > 0) to_next_[l - 1] = transfer_seconds(problem_, l - 1, places_[l - 1], place, 0);
  if (l + 1 < places_.size()) to_next_[l] = transfer_seconds(problem_, l, place, places_[l + 1], 0);
}

Strategy markov_search(const SearchProblem& problem, const SearchOptions& options) {
  MarkovWalk walk(problem);
  Strategy best{walk.places(), walk.seconds()};
  const Stream random({.seed = options.seed, .layer = stream_layer("foresight.markov")});
  const auto layers = static_cast<std::uint32_t>(problem.layers.size());
  std::uint64_t drawn = 0;
  for (int i = 0; i < options.rounds && layers > 0; ++i) {
    const std::size_t l = random.below(layers, drawn++);
    const std::vector<LayerPlace>& choices = walk.choices(l);
    const LayerPlace& place = choices[random.below(static_cast<std::uint32_t>(choices.size()), drawn++)];
    const double seconds = walk.with(l, place), luck = random.uniform(drawn++);
    // Ten per cent worse is taken in one of a hundred cases at first, and more and more rarely.
    const double strictness = 46.0 * (1 + 10.0 * i / options.rounds);
    if (seconds > walk.seconds() && luck >= std::exp(-strictness * (seconds / walk.seconds() - 1))) continue;
    walk.take(l, place);
    if (seconds < best.seconds) best = {walk.places(), seconds};
  }
  best.seconds = strategy_seconds(problem, best.layers);  // without what many small differences have rounded
  return best;
}

}  // namespace echelon::foresight
