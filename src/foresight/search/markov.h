#pragma once
// A strategy on its walk through the space, with the terms of its cost: changing one layer recomputes at most three of
// them.

#include "foresight/search/search.h"

namespace echelon::foresight {

class MarkovWalk {
 public:
  explicit MarkovWalk(const SearchProblem& problem);  // starts with every layer's first configuration

  const std::vector<LayerPlace>& places() const { return places_; }
  const std::vector<LayerPlace>& choices(std::size_t layer) const { return choices_[layer]; }
  double seconds() const { return seconds_; }
  double with(std::size_t layer, const LayerPlace& place) const;  // what it would take
  void take(std::size_t layer, const LayerPlace& place);

 private:
  const SearchProblem& problem_;
  std::vector<std::vector<LayerPlace>> choices_;
  std::vector<LayerPlace> places_;
  std::vector<double> own_, to_next_;
  double seconds_ = 0;
};

}  // namespace echelon::foresight
