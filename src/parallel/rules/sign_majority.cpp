// Every worker votes with the sign of the mean of its last gradients, number by number, and all step in the direction
// of the majority (signSGD with majority vote). A worker whose gradient is far off has one vote, like everybody. A
// single batch's sign is mostly noise, hence the mean (momentum; 0: the sign of the last one).

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }

class SignMajorityWorker : public GradientSide {
 public:
  SignMajorityWorker(const ReplicaView& view, float momentum)
      : GradientSide(view), momentum_(momentum), mean_(zeros(view.gradient.size())) {}
  void contribute(Range range, double, std::span<float> out) override {
    GradientSide::contribute(range, 1, out);
    const std::span<float> mean = mean_.as<float>().subspan(range.begin, range.count());
    for (std::size_t i = 0; i < out.size(); ++i) {
      mean[i] = momentum_ * mean[i] + (1 - momentum_) * out[i];
      out[i] = sign(mean[i]) / static_cast<float>(view_.workers);
    }
  }
  void apply(Range range, std::span<const float> answer) override {
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::copy(view_.gradient.data() + begin, answer.data() + (begin - range.begin), n);
    });
  }
  std::vector<StateSpan> state() override { return {as_state("mean", mean_)}; }

 private:
  float momentum_;
  Buffer mean_;
};

class SignMajorityShared : public SharedSide {
 public:
  explicit SignMajorityShared(std::size_t floats) : verdict_(zeros(floats)) {}
  void conclude(std::span<float> mean, double) override {
    std::ranges::transform(mean, verdict_.as<float>().begin(), sign);
  }
  std::span<const float> answer() const override { return verdict_.as<float>(); }
  std::vector<StateSpan> state() override { return {}; }  // every round makes a new verdict

 private:
  Buffer verdict_;
};

class SignMajority : public MergeRule {
 public:
  explicit SignMajority(float momentum) : momentum_(momentum) {}
  RuleTraits traits() const override { return {.sums = true}; }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<SignMajorityWorker>(view, momentum_);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<SignMajorityShared>(place.start.size());
  }

 private:
  float momentum_;
};

std::unique_ptr<const MergeRule> make_sign_majority(OptionReader& options) {
  return std::make_unique<SignMajority>(static_cast<float>(options.number("momentum", 0.9, 0, 0.9999)));
}

}  // namespace

RulePart sign_majority() {
  return {{"sign_majority",
           "a vote on the sign of every number of the gradient",
           {{"momentum", "0.9", "of the mean gradient whose sign is the vote"}}},
          make_sign_majority};
}

}  // namespace echelon::rules
