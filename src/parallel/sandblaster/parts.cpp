#include "parallel/sandblaster/parts.h"

#include "base/error.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/rules/rules.h"

namespace echelon {

namespace {

class LbfgsRule : public MergeRule {
 public:
  explicit LbfgsRule(const LbfgsSettings& settings) : settings(settings) {}
  RuleTraits traits() const override { return {.model = RuleTraits::Model::shared, .local_step = false}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    refuse(problems, !c.exchange->traits().coordinates,
           "rule lbfgs needs a coordinator that hands out pieces of the batch: take exchange coordinator");
    refuse(problems, facts.clips_by_norm,
           "optim.clip_norm changes the gradient, and a line search needs the true one: leave it out");
    refuse(problems, facts.carries,
           "a model that carries values from batch to batch has another loss each time it is evaluated, which a line "
           "search cannot bear");
  }
  const LbfgsSettings settings;
};

class CoordinatorKind : public ExchangeKind {
 public:
  explicit CoordinatorKind(int pieces) : pieces(pieces) {}
  ExchangeTraits traits() const override { return {.in_lockstep = true, .plain_numbers = true, .coordinates = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse(problems, c.rule_name != "lbfgs",
           fmt::format("exchange coordinator computes whole batches for rule lbfgs, not for {}: take exchange "
                       "all_reduce or server",
                       c.rule_name));
    refuse(problems, !c.when.every_step(), "exchange coordinator takes part in every step: leave out [when]");
    refuse(problems, facts.split, "exchange coordinator has the whole model on every worker: leave out --plan");
    refuse(problems, facts.fixed_data,
           "exchange coordinator gives pieces of the batch to whoever is free, but samples stay with their worker "
           "(data.partition = \"fixed\"): leave that out");
  }
  std::unique_ptr<Exchange> make(ExchangeParts) const override {
    invariant(false, "an engine of its own does it");
    return nullptr;
  }
  std::string traffic_text() const override {
    return "for an evaluation (a step has one or more): (n-1) W weights to all, P (n-1)/n W of P pieces to their "
           "servers";
  }
  std::string messages_text() const override {
    return "for an evaluation: n (n-1) with weights, 2 P (n-1) with gradients of P pieces, (4 P + 2 n) (n-1)/n that "
           "hand "
           "out pieces and report";
  }
  // Of one evaluation, with no piece twice.
  Traffic traffic(const TrafficQuery& c) const override {
    const double n = c.workers, others = (n - 1) / n, w = 4.0 * static_cast<double>(c.floats), p = pieces;
    const Traffic fetch{n * (n - 1), (n - 1) * w};
    const Traffic push{2 * p * (n - 1), p * others * w + p * (n - 1) * Mailbox::header_bytes};
    const Traffic hand_out{(3 * p + 2 * n) * others, (3 * p + 2 * n) * others * Mailbox::header_bytes};
    const Traffic reports{p * others, p * others * sizeof(PieceResult)};
    return fetch + push + hand_out + reports;
  }
  Exactness traffic_exactness() const override { return Exactness::mean; }

  const int pieces;
};

std::unique_ptr<const MergeRule> make_lbfgs(OptionReader& options) {
  LbfgsSettings s;
  s.history = static_cast<int>(options.integer("history", s.history, 1, 1000));
  s.searches = static_cast<int>(options.integer("searches", s.searches, 2, 1000));
  s.c1 = options.number("c1", s.c1, 1e-12, 0.5);
  s.c2 = options.number("c2", s.c2, 1e-6, 1);
  if (s.c2 <= s.c1) options.problem("c2", "must be greater than rule.c1, or no step fits");
  return std::make_unique<LbfgsRule>(s);
}

}  // namespace

SandblasterSettings sandblaster_settings(const Composition& c) {
  const auto* rule = dynamic_cast<const LbfgsRule*>(c.rule.get());
  const auto* kind = dynamic_cast<const CoordinatorKind*>(c.exchange.get());
  invariant(rule && kind, "rule lbfgs and exchange coordinator go together");
  return {rule->settings, kind->pieces};
}

namespace rules {

RulePart lbfgs() {
  return {{"lbfgs",
           "L-BFGS on whole batches, with a line search",
           {{"history", "10", "steps whose changes of the gradient are kept"},
            {"searches", "20", "evaluations of a step at most"},
            {"c1", "0.0001", "of Armijo's condition: the share of the promised descent that is enough"},
            {"c2", "0.9", "of Wolfe's condition: the share of the slope that may be left"}}},
          make_lbfgs};
}

}  // namespace rules

namespace exchanges {

ExchangePart coordinator() {
  return {{"coordinator",
           "a coordinator hands out small pieces of the batch; vectors stay on the servers",
           {{"pieces", "32", "of a batch"}}},
          [](OptionReader& options) -> std::unique_ptr<const ExchangeKind> {
            return std::make_unique<CoordinatorKind>(static_cast<int>(options.integer("pieces", 32, 1, 65536)));
          }};
}

}  // namespace exchanges

}  // namespace echelon
