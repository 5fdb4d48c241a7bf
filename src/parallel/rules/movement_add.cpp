// Every worker makes steps of its own; how far they have moved it is added to the common weights, whatever others add
// at the same time (Hogwild). The optimizer's state stays with the worker. A movement counts by the share of the global
// batch that it was made from, so that n workers together step as far as one would.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class MovementAddShared : public CommonWeights {
 public:
  using CommonWeights::CommonWeights;
  void conclude(std::span<float>, double) override { invariant(false, "movements are added one by one"); }
  void absorb(std::span<const float> in, const PushInfo& push) override {
    const std::span<float> w = weights();
    const auto share = static_cast<float>(push.share);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] += share * in[i];
  }
};

class MovementAdd : public OneByOne {
 public:
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::shared,
            .one_by_one = true,
            .answers_changes = false,
            .adds = true};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<MovementSide>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<MovementAddShared>(place.start);
  }
};

std::unique_ptr<const MergeRule> make_movement_add(OptionReader&) { return std::make_unique<MovementAdd>(); }

}  // namespace

RulePart movement_add() {
  return {{"movement_add", "what a worker's own steps have moved it is added to the common parameters", {}},
          make_movement_add};
}

}  // namespace echelon::rules
