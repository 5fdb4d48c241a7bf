// Number by number (Yin et al. 2018): the mean without the f smallest and the f largest of what the workers say, or
// their median.

#include "parallel/rules/robust.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

// The mean of what lies in the middle, when so many are left out on either side.
class MiddleEach : public EachSide {
 public:
  explicit MiddleEach(std::size_t left_out) : left_out_(left_out) {}
  void merge(std::span<const std::span<const float>> each, std::span<const double>, std::span<float> out) override {
    const std::size_t last = each.size() - left_out_;
    for_each_element(each, out.size(), [&](std::size_t i, std::span<const float> sorted) {
      float sum = 0;
      for (std::size_t k = left_out_; k < last; ++k) sum += sorted[k];
      out[i] = sum / static_cast<float>(last - left_out_);
    });
  }

 private:
  std::size_t left_out_;
};

class TrimmedMean : public RobustRule {
 public:
  explicit TrimmedMean(Liars liars) : RobustRule(liars, false) {}
  std::unique_ptr<EachSide> make_each(std::size_t, int workers) const override {
    return std::make_unique<MiddleEach>(static_cast<std::size_t>(liars_among(workers)));
  }

 private:
  int most_liars(int workers) const override { return (workers - 1) / 2; }
  std::string condition() const override { return "n >= 2 liars + 1"; }
};

class Median : public RobustRule {
 public:
  Median() : RobustRule({}, false) {}
  std::unique_ptr<EachSide> make_each(std::size_t, int workers) const override {
    return std::make_unique<MiddleEach>(static_cast<std::size_t>(most_liars(workers)));
  }

 private:
  int most_liars(int workers) const override { return (workers - 1) / 2; }
  std::string condition() const override { return "n >= 2 liars + 1"; }
};

}  // namespace

RulePart trimmed_mean() {
  return {{"trimmed_mean", "number by number, the mean without the smallest and the largest", {liars_setting()}},
          [](OptionReader& options) -> std::unique_ptr<const MergeRule> {
            return std::make_unique<TrimmedMean>(read_liars(options));
          }};
}

RulePart median() {
  return {{"median", "number by number, the median of all workers", {}},
          [](OptionReader&) -> std::unique_ptr<const MergeRule> { return std::make_unique<Median>(); }};
}

}  // namespace echelon::rules
