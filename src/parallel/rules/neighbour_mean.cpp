// With the neighbours' weights (D-PSGD; MALT with sync async). How a replica gathers what has come, itself included, is
// a choice (`gather`):
//
//   mean     by the graph's mixing matrix; all alike where they come at any time
//   steps    by the steps that each has done: the farther a replica is, the more it counts
//   median   of each number: a replica that is far off moves the others nowhere
//
// Another one is a class here and its name in the table.

#include <algorithm>

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class MeanGather : public PeerSide {
 public:
  double give(int, std::int64_t) override { return 1; }
  void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
    kernels::lerp(mine.data(), mine.data(), in.data(), static_cast<float>(gift.mix), mine.size());
  }
};

class StepsGather : public PeerSide {
 public:
  double give(int, std::int64_t) override { return 1; }
  void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
    if (steps_ == 0) steps_ = static_cast<double>(gift.clock + 1);
    const auto others = static_cast<double>(gift.sent_at + 1);
    steps_ += others;
    kernels::lerp(mine.data(), mine.data(), in.data(), static_cast<float>(others / steps_), mine.size());
  }
  void gathered(std::span<float>) override { steps_ = 0; }

 private:
  double steps_ = 0;  // of all that is merged in this gather; 0: nothing has come yet
};

class MedianGather : public PeerSide {
 public:
  double give(int, std::int64_t) override { return 1; }
  void take(std::span<float>, std::span<const float> in, const Gift&) override {
    if (count_ == others_.size()) others_.emplace_back();
    others_[count_++].assign(in.begin(), in.end());
  }
  void gathered(std::span<float> mine) override {
    if (count_ == 0) return;
    const std::size_t n = count_ + 1;
    const auto middle = static_cast<std::ptrdiff_t>(n / 2);
    values_.resize(n);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      for (std::size_t k = 0; k < count_; ++k) values_[k] = others_[k][i];
      values_[count_] = mine[i];
      std::ranges::nth_element(values_, values_.begin() + middle);
      const float upper = values_[n / 2];
      const float lower = n % 2 == 1 ? upper : *std::max_element(values_.begin(), values_.begin() + middle);
      mine[i] = lower + (upper - lower) / 2;
    }
    count_ = 0;
  }

 private:
  std::vector<std::vector<float>> others_;  // the first `count_` have come in this gather
  std::size_t count_ = 0;
  std::vector<float> values_;
};

template <typename Peer>
class NeighbourMean : public BetweenEquals {
 public:
  std::unique_ptr<PeerSide> make_peer(const ReplicaView&) const override { return std::make_unique<Peer>(); }
};

std::unique_ptr<const MergeRule> make_neighbour_mean(OptionReader& options) {
  const std::string gather = options.choice("gather", "mean", {"mean", "steps", "median"});
  if (gather == "steps") return std::make_unique<NeighbourMean<StepsGather>>();
  if (gather == "median") return std::make_unique<NeighbourMean<MedianGather>>();
  return std::make_unique<NeighbourMean<MeanGather>>();
}

}  // namespace

RulePart neighbour_mean() {
  return {{"neighbour_mean",
           "the neighbours' parameters and the own ones, gathered into one",
           {{"gather", "\"mean\"", "mean (by the graph's mixing matrix), steps (weighted by those done) or median"}}},
          make_neighbour_mean};
}

}  // namespace echelon::rules
