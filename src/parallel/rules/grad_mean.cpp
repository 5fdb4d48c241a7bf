// The mean of the gradients: all workers make the same step from it. Synchronous data parallelism as it is known
// it.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class GradMeanWorker : public GradientSide {
 public:
  using GradientSide::GradientSide;
  void apply(Range range, std::span<const float> answer) override {
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::copy(view_.gradient.data() + begin, answer.data() + (begin - range.begin), n);
    });
  }
};

class GradMeanShared : public SharedSide {
 public:
  explicit GradMeanShared(std::size_t floats) : mean_(zeros(floats)) {}
  void conclude(std::span<float> mean, double) override { std::ranges::copy(mean, mean_.as<float>().begin()); }
  std::span<const float> answer() const override { return mean_.as<float>(); }
  std::vector<StateSpan> state() override { return {}; }  // every round makes a new mean

 private:
  Buffer mean_;
};

class GradMean : public MergeRule {
 public:
  RuleTraits traits() const override { return {.sums = true, .gradient_itself = true, .answers_mean = true}; }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<GradMeanWorker>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<GradMeanShared>(place.start.size());
  }
};

std::unique_ptr<const MergeRule> make_grad_mean(OptionReader&) { return std::make_unique<GradMean>(); }

}  // namespace

RulePart grad_mean() {
  return {{"grad_mean", "the mean gradient of all workers; every replica takes the same step", {}}, make_grad_mean};
}

}  // namespace echelon::rules
