#include "parallel/rules/common.h"

namespace echelon::rules {

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
