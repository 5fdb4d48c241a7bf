// Momentum between the meetings of workers that train alone: the mean movement d of a block of steps is taken as one
// large gradient step, u = beta u + rate d, and the common weights z move
//
//   block     z += u                      (BMUF; the next block starts from z)
//   slowmo    z += u, u in units of the learning rate, which the schedule may have changed meanwhile (SlowMo)
//   nesterov  z += rate d + beta u        (BMUF with Nesterov's block momentum; DiLoCo's outer optimizer)

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

struct OuterMomentumSettings {
  enum class Kind { block, slowmo, nesterov } kind = Kind::block;
  float momentum = 0.5f, rate = 1;
};

class OuterMomentumShared : public CommonWeights {
 public:
  OuterMomentumShared(const OuterMomentumSettings& settings, std::span<const float> start)
      : CommonWeights(start), settings_(settings), momentum_(zeros(start.size())) {}
  void conclude(std::span<float> mean, double lr) override {
    const std::span<float> z = weights(), u = momentum_.as<float>();
    const float beta = settings_.momentum, rate = settings_.rate;
    const auto scale = settings_.kind == OuterMomentumSettings::Kind::slowmo && lr > 0 ? static_cast<float>(lr) : 1.0f;
    const bool nesterov = settings_.kind == OuterMomentumSettings::Kind::nesterov;
    for (std::size_t i = 0; i < z.size(); ++i) {
      u[i] = beta * u[i] + rate * mean[i] / scale;
      z[i] += nesterov ? rate * mean[i] + beta * u[i] : scale * u[i];
    }
  }
  std::vector<StateSpan> state() override { return {as_state("weights", weights()), as_state("momentum", momentum_)}; }

 private:
  OuterMomentumSettings settings_;
  Buffer momentum_;
};

class OuterMomentum : public MergeRule {
 public:
  explicit OuterMomentum(const OuterMomentumSettings& settings) : settings_(settings) {}
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::shared,
            .sums = true,
            .answers_changes = false};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<MovementSide>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<OuterMomentumShared>(settings_, place.start);
  }

 private:
  OuterMomentumSettings settings_;
};

std::unique_ptr<const MergeRule> make_outer_momentum(OptionReader& options) {
  OuterMomentumSettings s;
  const std::string kind = options.choice("kind", "block", {"block", "slowmo", "nesterov"});
  s.kind = kind == "slowmo"     ? OuterMomentumSettings::Kind::slowmo
           : kind == "nesterov" ? OuterMomentumSettings::Kind::nesterov
                                : OuterMomentumSettings::Kind::block;
  s.momentum = static_cast<float>(options.number("momentum", 0.5, 0, 0.9999));
  s.rate = static_cast<float>(options.number("lr", 1, 1e-6, 100));
  return std::make_unique<OuterMomentum>(s);
}

}  // namespace

RulePart outer_momentum() {
  return {{"outer_momentum",
           "the mean change since the last exchange is a gradient of an outer step",
           {{"kind", "\"block\"", "block (BMUF), slowmo or nesterov (DiLoCo)"},
            {"momentum", "0.5", "of the outer step"},
            {"lr", "1", "of the outer step"}}},
          make_outer_momentum};
}

}  // namespace echelon::rules
