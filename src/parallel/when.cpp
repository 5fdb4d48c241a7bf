#include "parallel/when.h"

#include "parallel/composition.h"

namespace echelon {

PartInfo when_part() {
  return {
      "when",
      "after which steps workers exchange",
      {{"tau", "1", "steps between exchanges"},
       {"probability", "1", "that a worker takes part when an exchange is due"},
       {"at_end", "false", "exchange once, after the last step"},
       {"n_push", "1", "exchange server, sync async: steps whose gradients are merged before a push"},
       {"n_fetch", "1", "the same: steps between fetches; until then a worker steps its copy"},
       {"warm_start", "0", "the same: updates that the first worker makes alone"},
       {"tau_down", "tau", "exchange elastic_tree: steps between showing weights to children; tau is to the parent"}}};
}

When read_when(OptionReader& options) {
  When w;
  w.tau = options.integer("tau", 1, 1, 1'000'000'000);
  w.probability = options.number("probability", 1, 0, 1);
  w.at_end = options.flag("at_end", false);
  w.n_push = options.integer("n_push", 1, 1, 1'000'000);
  w.n_fetch = options.integer("n_fetch", 1, 1, 1'000'000);
  w.warm_start = options.integer("warm_start", 0, 0, 1'000'000'000);
  w.tau_down = options.integer("tau_down", 0, 0, 1'000'000'000);
  if (w.probability < 1 && w.tau > 1) options.problem("probability", "and tau exclude each other: keep one of them");
  options.done();
  return w;
}

void When::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  const ExchangeTraits exchange = c.exchange->traits();
  const RuleTraits rule = c.rule->traits();
  const bool gradients = rule.quantity == RuleTraits::Quantity::gradient, in_lockstep = !c.uses_messages();
  refuse(problems, tau_down > 0 && !exchange.two_periods,
         fmt::format("when.tau_down is the period of a tree's way to the children, and exchange {} has only one: leave "
                     "it out, or take exchange elastic_tree",
                     c.exchange_name));
  if (merges_steps()) accepts_merged_steps(c, problems);
  refuse(problems, probability < 1 && gradients && (in_lockstep || exchange.adds_what_comes),
         "a gradient that is not exchanged is lost: when.probability goes with rules that exchange weights");
  refuse(problems, (tau > 1 || probability < 1) && gradients && !in_lockstep && !exchange.adds_what_comes,
         fmt::format("rule {} would lose the gradients that are not exchanged: leave out when.tau and probability, and "
                     "take when.n_push for merging some of them first, or rule param_mean",
                     c.rule_name));
  refuse(problems, (tau > 1 || at_end) && gradients && in_lockstep,
         fmt::format("rule {} steps only from exchanged gradients: leave out when.tau, or take rule param_mean",
                     c.rule_name));
  refuse(problems, at_end && gradients,
         fmt::format("rule {} exchanges gradients, which do not exist any more at the end: when.at_end goes with rule "
                     "param_mean",
                     c.rule_name));
  const bool only_exchanges_move = rule.model == RuleTraits::Model::shared;  // what is evaluated and saved
  refuse(problems, at_end && !gradients && only_exchanges_move,
         fmt::format("rule {} has a common model that only exchanges move, and at_end leaves them all out: take rule "
                     "param_mean, or leave out when.at_end",
                     c.rule_name));
  if (facts.workers > 1 && facts.steps > 0 && !at_end && only_exchanges_move) {
    const std::int64_t between = c.exchange->steps_between(tau);
    // A fast worker may take others' steps too, where these are not handed out beforehand.
    const std::int64_t of_a_worker = exchange.in_lockstep ? facts.steps : facts.steps * facts.workers;
    refuse(problems, between > of_a_worker,
           fmt::format("with when.tau = {} the {} steps of this run have no exchange, and the model would stay as it "
                       "began: set when.tau to at most {}",
                       tau, facts.steps, facts.steps * tau / between));
  }
}

void When::accepts_merged_steps(const Composition& c, Problems& problems) const {
  refuse(problems, !c.exchange->traits().merges_steps,
         fmt::format("when.n_push, n_fetch and warm_start are for parameter servers, and exchange {} has pushes and "
                     "answers of one step: leave them out, or take exchange server",
                     c.exchange_name));
  refuse(
      problems, c.rule->traits().quantity != RuleTraits::Quantity::gradient,
      fmt::format("when.n_push, n_fetch and warm_start are about gradients, but rule {} exchanges weights: leave them "
                  "out, and take when.tau",
                  c.rule_name));
  refuse(problems, !c.sync->traits().never_waits,
         fmt::format("with when.n_push, n_fetch or warm_start workers are not at the same step, but sync {} counts "
                     "steps: take sync async, or leave them out",
                     c.sync_name));
}

}  // namespace echelon
