#pragma once
// What several rules have in common: what they refuse, copying gradients without the statistics between them, memory
// that starts as zeros.

#include <algorithm>

#include "kernels/vector.h"
#include "parallel/composition.h"

namespace echelon::rules {

// Calls f(begin, count) for every run of trained numbers (no statistics) within `range`, with `begin` in the flat
// buffer.
template <typename F>
void for_each_weight(const std::vector<TrainedSpan>& segments, Range range, const F& f) {
  for (const TrainedSpan& s : segments) {
    const std::size_t begin = std::max(s.offset, range.begin), end = std::min(s.offset + s.size, range.end);
    if (!s.statistic && begin < end) f(begin, end - begin);
  }
}

inline Buffer zeros(std::size_t floats) { return Buffer(floats * sizeof(float)); }

// Rules between equals: replicas train alone and give their weights to each other.
class BetweenEquals : public MergeRule {
 public:
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::mean,
            .peers = true,
            .changes = false,
            .answers_changes = false};
  }
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;
};

// Rules whose shared side merges contributions one by one, and never a sum of them.
class OneByOne : public MergeRule {
 public:
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;

 protected:
  // Further cures, for messages: where a collective sums, and where servers sum on the way.
  virtual std::string instead_of_sums() const { return {}; }
  virtual std::string instead_of_sums_on_the_way() const { return {}; }
};

// Contributes the gradient.
class GradientSide : public WorkerSide {
 public:
  explicit GradientSide(const ReplicaView& view) : view_(view) {}
  void contribute(Range range, double share, std::span<float> out) override {
    std::ranges::fill(out, 0.0f);
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::scale(out.data() + (begin - range.begin), view_.gradient.data() + begin, static_cast<float>(share), n);
    });
  }

 protected:
  ReplicaView view_;
};

// Contributes how far its weights have moved away from the last answer (at the beginning: from the start), and takes
// the answer's weights for its own.
class MovementSide : public WorkerSide {
 public:
  explicit MovementSide(const ReplicaView& view);
  void contribute(Range range, double share, std::span<float> out) override;
  void apply(Range range, std::span<const float> answer) override;
  std::vector<StateSpan> state() override { return {as_state("centre", centre_)}; }

 protected:
  ReplicaView view_;
  Buffer centre_;  // the last answer
};

// Common weights, which are what workers are answered with.
class CommonWeights : public SharedSide {
 public:
  explicit CommonWeights(std::span<const float> start);
  std::span<const float> answer() const override { return weights_.as<float>(); }
  std::vector<StateSpan> state() override { return {as_state("weights", weights())}; }

 protected:
  std::span<float> weights() { return weights_.as<float>(); }

 private:
  Buffer weights_;
};

}  // namespace echelon::rules
