// Synchronous model averaging (CROSSBOW): every learner is pulled back towards a central average z by c = alpha (w -
// z), and z moves by the sum of these corrections, with a momentum of its own. With momentum 0 this is synchronous
// elastic averaging.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

struct SmaSettings {
  double alpha = 0;  // 0: 1 / workers
  float momentum = 0.9f;
};

// Contributes its correction times the number of workers (the shared side gets a mean), and makes it.
class SmaWorker : public MovementSide {
 public:
  SmaWorker(const ReplicaView& view, double alpha)
      : MovementSide(view), alpha_(static_cast<float>(alpha > 0 ? alpha : 1.0 / view.workers)) {}
  void contribute(Range range, double share, std::span<float> out) override {
    float* weights = view_.weights.data() + range.begin;
    const float* centre = centre_.as<float>().data() + range.begin;
    const auto times = static_cast<float>(share * view_.workers);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float correction = alpha_ * (weights[i] - centre[i]);
      weights[i] -= correction;
      out[i] = times * correction;
    }
  }
  void apply(Range range, std::span<const float> answer) override {
    kernels::copy(centre_.as<float>().data() + range.begin, answer.data(), answer.size());
  }

 private:
  float alpha_;
};

class SmaShared : public CommonWeights {  // the centre
 public:
  SmaShared(const SmaSettings& settings, std::span<const float> start)
      : CommonWeights(start), settings_(settings), before_(zeros(start.size())) {
    std::ranges::copy(start, before_.as<float>().begin());
  }
  void conclude(std::span<float> mean, double) override {
    const std::span<float> z = weights(), before = before_.as<float>();
    for (std::size_t i = 0; i < z.size(); ++i) {
      const float moved = settings_.momentum * (z[i] - before[i]);
      before[i] = z[i];
      z[i] += mean[i] + moved;
    }
  }
  void restart() override { std::ranges::copy(weights(), before_.as<float>().begin()); }
  std::vector<StateSpan> state() override { return {as_state("weights", weights()), as_state("before", before_)}; }

 private:
  SmaSettings settings_;
  Buffer before_;
};

class Sma : public MergeRule {
 public:
  explicit Sma(const SmaSettings& settings) : settings_(settings) {}
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::shared,
            .sums = true,
            .answers_changes = false};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<SmaWorker>(view, settings_.alpha);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<SmaShared>(settings_, place.start);
  }

 private:
  SmaSettings settings_;
};

std::unique_ptr<const MergeRule> make_sma(OptionReader& options) {
  SmaSettings s;
  s.alpha = options.number("alpha", 0, 0, 1);
  s.momentum = static_cast<float>(options.number("momentum", 0.9, 0, 0.9999));
  return std::make_unique<Sma>(s);
}

}  // namespace

RulePart sma() {
  return {{"sma",
           "every learner is drawn towards the central average model, which has a momentum",
           {{"alpha", "1 / workers", "the share of the difference that is corrected"},
            {"momentum", "0.9", "of the central model"}}},
          make_sma};
}

}  // namespace echelon::rules
