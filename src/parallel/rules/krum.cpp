// Krum (Blanchard et al. 2017): the step is made of the gradient that is nearest to its n - f - 2 nearest neighbours,
// of n workers of which f may lie. Multi-Krum: of the mean of the `keep` gradients that come first in this order.

#include "parallel/rules/robust.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class KrumEach : public EachSide {
 public:
  KrumEach(int liars, std::size_t keep) : liars_(static_cast<std::size_t>(liars)), keep_(keep) {}
  void merge(std::span<const std::span<const float>> each, std::span<const double> products,
             std::span<float> out) override {
    const std::size_t n = each.size(), keep = std::min(keep_ > 0 ? keep_ : n - liars_, n);
    const std::vector<double> distances = squared_distances(products, n);
    std::vector<std::pair<double, std::size_t>> scores;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> to_others;
      for (std::size_t j = 0; j < n; ++j)
        if (j != i) to_others.push_back(distances[i * n + j]);
      std::ranges::sort(to_others);
      double score = 0;
      for (std::size_t k = 0; k + liars_ + 2 < n; ++k) score += to_others[k];
      scores.emplace_back(score, i);
    }
    std::ranges::sort(scores);
    std::vector<std::size_t> chosen;
    for (std::size_t k = 0; k < keep; ++k) chosen.push_back(scores[k].second);
    mean_of(each, chosen, out);
  }

 private:
  std::size_t liars_, keep_;
};

class Krum : public RobustRule {
 public:
  Krum(Liars liars, std::int64_t keep) : RobustRule(liars, true), keep_(keep) {}
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    RobustRule::accepts(c, facts, problems);
    refuse(problems, facts.workers > 0 && keep_ > facts.workers,
           fmt::format("rule.keep={} gradients are more than {} workers send: lower it", keep_, facts.workers));
  }
  std::unique_ptr<EachSide> make_each(std::size_t, int workers) const override {
    return std::make_unique<KrumEach>(liars_among(workers), static_cast<std::size_t>(keep_));
  }

 private:
  int most_liars(int workers) const override { return (workers - 3) / 2; }
  std::string condition() const override { return "n >= 2 liars + 3"; }
  std::int64_t keep_;
};

std::unique_ptr<const MergeRule> make_krum(OptionReader& options) {
  const Liars liars = read_liars(options);
  return std::make_unique<Krum>(liars, options.integer("keep", 1, 0, 1'000'000));
}

}  // namespace

RulePart krum() {
  return {{"krum",
           "the gradient that is nearest to its neighbours, or the mean of several that are",
           {liars_setting(), {"keep", "1", "gradients whose mean is taken; 0: all but as many as may lie"}}},
          make_krum};
}

}  // namespace echelon::rules
