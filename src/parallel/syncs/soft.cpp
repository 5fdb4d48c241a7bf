// Soft rounds (MPCA-SGD): workers never wait for a round's answer, unless the last one is `staleness` steps late.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Soft : public InRounds {
 public:
  explicit Soft(std::int64_t staleness) : staleness_(staleness) {}
  SyncTraits traits() const override {
    return {.in_rounds = true, .answers_every_push = false, .varies_traffic = true};
  }
  std::int64_t steps_without_answer() const override { return staleness_; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    InRounds::accepts(c, facts, problems);
    refuse(problems, !c.rule->traits().decoupled,
           fmt::format("sync soft lets workers go on while their answers are on their way, which rule {} "
                       "cannot deal with: take sync bsp, or rule mpca",
                       c.rule_name));
    refuse(problems, static_cast<bool>(c.codec),
           fmt::format("sync soft answers with plain weights: take codec none instead of {}", c.codec_name));
  }

 private:
  std::int64_t staleness_;
};

}  // namespace

SyncPart soft() {
  return {{"soft",
           "rounds that no worker waits for, unless the last answer is late",
           {{"staleness", "16", "steps after which it is"}}},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            return std::make_unique<Soft>(options.integer("staleness", 16, 1, 1'000'000));
          }};
}

}  // namespace echelon::syncs
