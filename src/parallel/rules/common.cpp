#include "parallel/rules/common.h"

namespace echelon::rules {

void BetweenEquals::accepts(const Composition& c, const CompositionFacts&, Problems& problems) const {
  refuse(problems, !c.exchange->traits().peers,
         fmt::format("rule {} is between equals, but exchange {} has a place where contributions meet: take exchange "
                     "neighbour or random_peer, or rule param_mean",
                     c.rule_name, c.exchange_name));
}

void OneByOne::accepts(const Composition& c, const CompositionFacts&, Problems& problems) const {
  const ExchangeTraits exchange = c.exchange->traits();
  refuse(problems, exchange.sums,
         fmt::format("exchange {} adds contributions up, but rule {} merges them one by one: take exchange server with "
                     "sync async{}",
                     c.exchange_name, c.rule_name, instead_of_sums()));
  refuse(problems, exchange.sums_on_the_way,
         fmt::format("exchange {} adds contributions up on the way, but rule {} merges them one by one: leave out "
                     "exchange.fanout and two_level{}",
                     c.exchange_name, c.rule_name, instead_of_sums_on_the_way()));
}

MovementSide::MovementSide(const ReplicaView& view) : view_(view), centre_(zeros(view.weights.size())) {
  std::ranges::copy(view.weights, centre_.as<float>().begin());
}

void MovementSide::contribute(Range range, double share, std::span<float> out) {
  const float* centre = centre_.as<float>().data() + range.begin;
  const float* weights = view_.weights.data() + range.begin;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(share) * (weights[i] - centre[i]);
}

void MovementSide::apply(Range range, std::span<const float> answer) {
  kernels::copy(view_.weights.data() + range.begin, answer.data(), answer.size());
  kernels::copy(centre_.as<float>().data() + range.begin, answer.data(), answer.size());
}

CommonWeights::CommonWeights(std::span<const float> start) : weights_(zeros(start.size())) {
  std::ranges::copy(start, weights().begin());
}

}  // namespace echelon::rules
