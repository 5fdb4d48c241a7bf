// The mean of the workers' weights, every so often (SparkNet), or once at the end (Zinkevich). Workers contribute their
// movement since they last met, so that any codec can carry it.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class ParamMeanShared : public CommonWeights {
 public:
  using CommonWeights::CommonWeights;
  void conclude(std::span<float> mean, double) override {
    kernels::add(weights().data(), weights().data(), mean.data(), mean.size());
  }
};

class ParamMean : public MergeRule {
 public:
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::mean,
            .sums = true,
            .answers_changes = false};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<MovementSide>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<ParamMeanShared>(place.start);
  }
};

std::unique_ptr<const MergeRule> make_param_mean(OptionReader&) { return std::make_unique<ParamMean>(); }

}  // namespace

RulePart param_mean() {
  return {{"param_mean", "the mean of the workers' parameters replaces them", {}}, make_param_mean};
}

}  // namespace echelon::rules
