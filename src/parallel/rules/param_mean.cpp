// The mean of the workers' weights, every so often (SparkNet), or once at the end (Zinkevich). Workers contribute their
// movement since they last met, so that any codec can carry it.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class Shared : public SharedSide {
 public:
  explicit Shared(std::span<const float> start) : weights_(zeros(start.size())) {
    std::ranges::copy(start, weights_.as<float>().begin());
  }
  void conclude(std::span<float> mean, const Round&) override {
    kernels::add(weights_.as<float>().data(), weights_.as<float>().data(), mean.data(), mean.size());
  }
  std::span<const float> answer() const override { return weights_.as<float>(); }
  std::vector<StateSpan> state() override { return {as_state("weights", weights_.as<float>())}; }

 private:
  Buffer weights_;
};

class ParamMean : public MergeRule {
 public:
  RuleTraits traits() const override {
    return {.moment = RuleTraits::Moment::weights,
            .model = RuleTraits::Model::mean,
            .sums = true,
            .answers_changes = false};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<MovementSide>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<Shared>(place.start);
  }
};

}  // namespace

std::unique_ptr<const MergeRule> param_mean(OptionReader&) { return std::make_unique<ParamMean>(); }

}  // namespace echelon::rules
