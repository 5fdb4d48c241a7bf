// Bulyan (El Mhamdi et al. 2018): n - 2 f gradients are chosen one after the other by Krum, each among those that are
// left; then, number by number, the mean of those chosen ones that are nearest to their median, all but 2 f.

#include <cmath>
#include <numeric>

#include "parallel/rules/robust.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class BulyanEach : public EachSide {
 public:
  explicit BulyanEach(int liars) : liars_(static_cast<std::size_t>(liars)) {}
  void merge(std::span<const std::span<const float>> each, std::span<const double> products,
             std::span<float> out) override {
    const std::size_t n = each.size(), wanted = n - 2 * liars_, kept = wanted - 2 * liars_;
    const std::vector<double> distances = squared_distances(products, n);
    std::vector<std::size_t> left(n);
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::vector<std::span<const float>> chosen;
    while (chosen.size() < wanted) {
      const std::size_t neighbours = left.size() > liars_ + 2 ? left.size() - liars_ - 2 : 1;
      const std::size_t best = nearest_to_others(distances, n, left, neighbours);
      chosen.push_back(each[best]);
      std::erase(left, best);
    }
    for_each_element(chosen, out.size(), [&](std::size_t i, std::span<const float> sorted) {
      const float median = sorted[wanted / 2];
      std::size_t first = wanted / 2, last = first + 1;  // what is nearest to the median lies around it
      while (last - first < kept) {
        const bool down = last == wanted || (first > 0 && median - sorted[first - 1] <= sorted[last] - median);
        down ? --first : ++last;
      }
      float sum = 0;
      for (std::size_t k = first; k < last; ++k) sum += sorted[k];
      out[i] = sum / static_cast<float>(kept);
    });
  }

 private:
  std::size_t liars_;
};

class Bulyan : public RobustRule {
 public:
  explicit Bulyan(Liars liars) : RobustRule(liars, true) {}
  std::unique_ptr<EachSide> make_each(std::size_t, int workers) const override {
    return std::make_unique<BulyanEach>(liars_among(workers));
  }

 private:
  int most_liars(int workers) const override { return (workers - 3) / 4; }
  std::string condition() const override { return "n >= 4 liars + 3"; }
};

}  // namespace

RulePart bulyan() {
  return {
      {"bulyan", "Krum's choices, and number by number the mean of what is nearest to their median", {liars_setting()}},
      [](OptionReader& options) -> std::unique_ptr<const MergeRule> {
        return std::make_unique<Bulyan>(read_liars(options));
      }};
}

}  // namespace echelon::rules
