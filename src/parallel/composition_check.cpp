// Which parts fit together. Every refusal says why, and which composition near this one works.

#include "parallel/composition.h"

namespace echelon {

namespace {

class Fitting {
 public:
  Fitting(const Composition& composition, const CompositionFacts& composition_facts, Problems& problems)
      : c(composition), facts(composition_facts), problems_(problems) {}

  void check() {
    c.rule->accepts(c, facts, problems_);
    c.exchange->accepts(c, facts, problems_);
    c.when.accepts(c, facts, problems_);
    c.sync.accepts(c, facts, problems_);
    c.order.accepts(c, facts, problems_);
    check_rule_and_exchange();
    check_sync();
    check_server_options();
    check_codec();
    check_period();
    check_order();
    check_model();
    if (facts.workers > 0) check_world();
  }

 private:
  void refuse(bool when, const std::string& why) {
    if (when) problems_.add({}, why);
  }
  void check_rule_and_exchange();
  void check_sync();
  void check_server_options();
  void check_codec();
  void check_period();
  void check_order();
  void check_model();
  void check_world();

  const Composition& c;
  const CompositionFacts& facts;
  Problems& problems_;
  const RuleTraits rule = c.rule->traits();
  const ExchangeTraits exchange = c.exchange->traits();
  const bool in_lockstep = !c.uses_messages();
  const bool gradients = rule.quantity == RuleTraits::Quantity::gradient;
  const std::string r = c.rule_name, e = c.exchange_name, s = to_text(c.sync.kind), o = to_text(c.order.kind);
};

void Fitting::check_rule_and_exchange() {
  refuse(exchange.peers && !rule.peers,
         fmt::format("exchange {} is between equals, but rule {} needs a place where contributions meet: take rule "
                     "neighbour_mean or gossip_sum, or exchange server",
                     e, r));
  refuse(!exchange.peers && rule.peers,
         fmt::format("rule {} is between equals, but exchange {} has a place where contributions meet: take exchange "
                     "neighbour or random_peer, or rule param_mean",
                     r, e));
  refuse(exchange.sums && !exchange.peers && !rule.peers && !rule.sums,
         fmt::format("exchange {} adds contributions up, but rule {} merges them one by one: take exchange server with "
                     "sync async{}",
                     e, r, r == "elastic" ? ", or rule sma, which is its synchronous form" : ""));
  refuse(exchange.adds_what_comes && !rule.answers_mean,
         fmt::format("exchange {} adds contributions to each worker's own as they come, but rule {} makes something "
                     "else of them: take rule grad_mean, or exchange server",
                     e, r));
  refuse(
      exchange.pairs && !(rule.movable && rule.quantity == RuleTraits::Quantity::weights),
      fmt::format("exchange {} has workers that draw each other, but rule {} needs a place where contributions meet: "
                  "take rule elastic, or exchange server",
                  e, r));
  refuse(exchange.adds && !rule.adds,
         fmt::format("exchange {} adds to common weights where they lie, which rule {} does not: take rule "
                     "movement_add, or exchange server",
                     e, r));
  refuse(exchange.learners &&
             !(rule.sums && rule.quantity == RuleTraits::Quantity::weights && rule.model == RuleTraits::Model::shared),
         fmt::format("exchange {} draws many learners towards a common model, which rule {} does not have: take rule "
                     "sma or outer_momentum, or exchange all_reduce",
                     e, r));
  refuse(
      rule.decoupled && !(c.sync.kind == Sync::Kind::soft && e == "server"),
      fmt::format("rule {} is for workers that go on while their contributions travel: take exchange server with sync "
                  "soft, or rule param_mean",
                  r));
}

void Fitting::check_sync() {
  refuse(exchange.either_pace && c.sync.kind != Sync::Kind::bsp && c.sync.kind != Sync::Kind::async,
         fmt::format("between neighbours nobody knows how far all the others are, which is what sync {} needs: take "
                     "sync bsp or async",
                     s));
  refuse((exchange.peers || exchange.adds_what_comes) && !exchange.either_pace && c.sync.kind != Sync::Kind::async,
         fmt::format("in exchange {} nobody waits for anybody, so sync {} has no meaning there: take sync async{}", e,
                     s, exchange.peers ? ", or exchange neighbour with graph one_peer" : ""));
  refuse(exchange.in_lockstep && !exchange.either_pace && c.sync.kind != Sync::Kind::bsp,
         fmt::format("exchange {} has all workers at the same step, so sync {} has no meaning there: take sync bsp, or "
                     "exchange server",
                     e, s));
  if (!in_lockstep && !exchange.peers && !rule.peers && !exchange.adds_what_comes) {
    refuse(c.sync.in_rounds() && !rule.sums,
           fmt::format("sync {} closes rounds, but rule {} merges contributions one by one: take sync async", s, r));
    refuse(!c.sync.in_rounds() && !rule.one_by_one,
           fmt::format("sync {} merges contributions as they come, but rule {} needs whole rounds: take sync bsp{}", s,
                       r, r == "grad_mean" ? ", or rule grad_push" : ""));
    refuse(
        c.sync.kind == Sync::Kind::quorum && rule.quantity == RuleTraits::Quantity::gradient && rule.local_step,
        fmt::format("with sync {} a worker can miss a round, and with rule {} its weights would then differ for ever: "
                    "take rule grad_push, which makes the same step where all can read the result",
                    s, r));
    refuse(c.sync.bounded() && rule.quantity == RuleTraits::Quantity::weights,
           fmt::format("sync {} bounds how stale gradients are, but rule {} exchanges weights: take sync async", s, r));
    refuse(c.sync.kind == Sync::Kind::value && rule.quantity == RuleTraits::Quantity::weights,
           fmt::format("sync value bounds how far gradients may move the weights, but rule {} exchanges weights: take "
                       "sync async",
                       r));
  }
  refuse(exchange.own_parts && c.sync.common_work,
         fmt::format("exchange {} has workers that step together, so each must do its own part: set sync.work=own", e));
  refuse(exchange.pairs && c.sync.kind != Sync::Kind::async,
         fmt::format("in exchange {} nobody waits for anybody: take sync async", e));
  refuse(c.sync.kind == Sync::Kind::soft && !rule.decoupled,
         fmt::format("sync soft lets workers go on while their answers travel, which rule {} does not bear: take sync "
                     "bsp, or rule mpca",
                     r));
  refuse(c.sync.kind == Sync::Kind::approximate && !exchange.sites,
         fmt::format("sync approximate is between sites with servers of their own, which exchange {} has not: take "
                     "exchange server without fanout, two_level and replicas, or sync async",
                     e));
  refuse(c.sync.kind == Sync::Kind::approximate && !(rule.movable && rule.quantity == RuleTraits::Quantity::gradient),
         fmt::format("sync approximate sends changes of weights between sites, and rule {} does not take them: take "
                     "rule grad_push, or sync async",
                     r));
  refuse(exchange.adds && c.sync.kind != Sync::Kind::async,
         fmt::format("nobody waits where all write at once, so sync {} has no meaning there: take sync async", s));
}

void Fitting::check_server_options() {
  refuse(
      exchange.gradients && !rule.gradient_itself,
      fmt::format("exchange {} sends the factors of gradients, but rule {} exchanges something else: take rule {}", e,
                  r, in_lockstep ? "grad_mean, or exchange all_reduce" : "grad_push, or leave out exchange.factors"));
  refuse(exchange.no_own_gradient && (c.sync.kind == Sync::Kind::ssp || c.sync.kind == Sync::Kind::essp),
         fmt::format("with exchange.factors a worker has no gradient of its own to step by, but with sync {} not every "
                     "push is answered: take sync delay, bsp or async, or leave out exchange.factors",
                     s));
  refuse(exchange.no_own_gradient && c.sync.kind == Sync::Kind::a_bsp,
         "exchange.factors are of all samples of a worker's part, but with sync a_bsp it may have done only some of "
         "them: take sync quorum, or leave out exchange.factors");
  if (exchange.sums_on_the_way) {
    refuse(!rule.sums, fmt::format("exchange {} adds contributions up on the way, but rule {} merges them one by one: "
                                   "leave out exchange.fanout and two_level{}",
                                   e, r, r == "elastic" ? ", or take exchange elastic_tree" : ""));
    refuse(c.sync.kind != Sync::Kind::bsp && c.sync.kind != Sync::Kind::async && c.sync.kind != Sync::Kind::soft,
           fmt::format("sync {} looks at every worker's clock, but exchange {} adds contributions up on the way: take "
                       "sync bsp or async, or leave out exchange.fanout and two_level",
                       s, e));
  }
  refuse(exchange.answers_pushes && (c.sync.kind == Sync::Kind::ssp || c.sync.kind == Sync::Kind::essp ||
                                     c.sync.kind == Sync::Kind::soft || c.sync.kind == Sync::Kind::a_bsp),
         fmt::format("an update on replicated servers counts when its answer is there, but with sync {} not every push "
                     "gets one: take sync delay, bsp or async, or leave out exchange.replicas",
                     s));
  refuse(c.when.merges_steps() && !gradients,
         fmt::format(
             "when.n_push, n_fetch and warm_start are about gradients, but rule {} exchanges weights: leave them out, "
             "and take when.tau",
             r));
  refuse(c.when.merges_steps() && c.sync.kind != Sync::Kind::async,
         fmt::format(
             "with when.n_push, n_fetch or warm_start workers are not at the same step, but sync {} counts steps: take "
             "sync async, or leave them out",
             s));
}

void Fitting::check_codec() {
  refuse(c.sync.kind == Sync::Kind::soft && c.codec,
         fmt::format("sync soft answers with plain weights: take codec none instead of {}", c.codec_name));
  refuse(exchange.plain_numbers && c.codec,
         fmt::format("exchange {} sends plain numbers: take codec none, or exchange all_reduce for codec {}", e,
                     c.codec_name));
  refuse(!c.codec_choice.empty() && !exchange.chooses_codec,
         fmt::format("exchange {} cannot change its codec on the way: name one instead of auto, or take exchange "
                     "all_reduce",
                     e));
  for (const NamedCodec& codec : c.codec_choice)
    refuse(!rule.changes && !codec.maker({{64, 8}})->traits().weights,
           fmt::format("codec {} is too coarse for weights, which is what rule {} sends: leave it out of "
                       "codec.candidates, or take a rule that sends changes (param_mean, sma, grad_mean)",
                       codec.name, r));
  if (c.codec && !rule.changes) {
    const Codec::Traits codec = c.codec({{64, 8}})->traits();
    refuse(!codec.weights,
           fmt::format("codec {} is too coarse for weights, which is what rule {} sends: take codec fp16 or none, or a "
                       "rule that sends changes (param_mean, sma, grad_mean)",
                       c.codec_name, r));
  }
}

void Fitting::check_period() {
  refuse(c.when.merges_steps() && !exchange.merges_steps,
         fmt::format("when.n_push, n_fetch and warm_start are for parameter servers, and exchange {} has pushes and "
                     "answers of one step: leave them out, or take exchange server",
                     e));
  refuse(c.when.tau_down > 0 && !exchange.two_periods,
         fmt::format("when.tau_down is the period of a tree's way to the children, and exchange {} has only one: leave "
                     "it out, or take exchange elastic_tree",
                     e));
  refuse(c.when.at_end && rule.quantity == RuleTraits::Quantity::gradient,
         fmt::format("rule {} exchanges gradients, which nobody has any more at the end: at_end goes with rule "
                     "param_mean",
                     r));
  refuse(c.when.probability < 1 && c.sync.in_rounds() && !in_lockstep,
         fmt::format("with sync {} every worker comes to every round: leave out when.probability, or take async", s));
  refuse(c.when.probability < 1 && (in_lockstep || exchange.adds_what_comes) &&
             rule.quantity == RuleTraits::Quantity::gradient,
         "a gradient that is not exchanged is lost: when.probability goes with rules that exchange weights");
  refuse((c.when.tau > 1 || c.when.probability < 1) && gradients && !in_lockstep && !exchange.adds_what_comes,
         fmt::format("rule {} would lose the gradients that are not exchanged: leave out when.tau and probability, "
                     "and take when.n_push for merging some of them first, or rule param_mean",
                     r));
  refuse((c.when.tau > 1 || c.when.at_end) && gradients && in_lockstep,
         fmt::format("rule {} steps only from exchanged gradients: leave out when.tau, or take rule param_mean", r));
  refuse(c.when.at_end && rule.quantity == RuleTraits::Quantity::weights && rule.model == RuleTraits::Model::shared,
         fmt::format("rule {} has a common model that only exchanges move, and at_end leaves them all out: take rule "
                     "param_mean, or leave out when.at_end",
                     r));
}

void Fitting::check_order() {
  const std::string why = why_not_early(c);
  if (c.order.cuts_slices() && !exchange.orders_slices) {  // the rest would be about a composition that is far away
    refuse(true, fmt::format("order {} sends slices one by one, which exchange {} does not: take order {}, or exchange "
                             "server with rule grad_push",
                             o, e, why.empty() ? "backward" : "whole"));
    return;
  }
  refuse(c.order.is_early() && !why.empty(), fmt::format("order {} sends while backward still runs, but {}", o, why));
  refuse(
      c.order.cuts_slices() && exchange.no_own_gradient,
      fmt::format("order {} cuts layers into slices, but exchange.factors are of whole layers: take order backward or "
                  "fusion, or leave out exchange.factors",
                  o));
  refuse(c.order.kind == Order::Kind::magnitude && !c.sync.bounded(),
         fmt::format("order magnitude sends some slices later than others, but with sync {} nobody knows how late they "
                     "may be: take sync ssp",
                     s));
  refuse(
      c.order.kind == Order::Kind::magnitude && c.sync.bounded() &&
          c.order.rate * static_cast<double>(c.sync.staleness + 1) < 1,
      fmt::format("every slice must go out within {} steps, and order.rate={:g} has no room for that: set order.rate "
                  "to at least {:.3g}",
                  c.sync.staleness + 1, c.order.rate, 1 / static_cast<double>(c.sync.staleness + 1)));
  refuse(c.order.kind == Order::Kind::magnitude && c.codec,
         "order magnitude chooses what is sent, and so would a codec with error feedback: take codec none");
  refuse(c.order.defers() && c.sync.kind != Sync::Kind::bsp,
         fmt::format("with order {} the next forward waits for each answer, but with sync {} not every step has one "
                     "from all: take sync bsp, or order backward",
                     o, s));
  refuse(c.order.defers() && rule.local_step,
         fmt::format("with order {} the next forward waits for the weights that servers send, but with rule {} every "
                     "worker makes the step itself: take rule grad_push, or order backward",
                     o, r));
}

void Fitting::check_model() {
  refuse(facts.phases > 1,
         "a model that trains in phases (a GAN) has one gradient for each: only the system bsp does that");
  refuse(facts.carries && c.sync.common_work,
         "a model that carries values from batch to batch must get the following batch each time: set sync.work=own");
  for (const NamedCodec& codec : c.codec_choice)
    refuse(
        facts.has_momentum && codec.maker({})->traits().momentum,
        fmt::format("codec {} has a momentum in it, and the optimizer has one too: leave it out of codec.candidates, "
                    "or take optim.name sgd",
                    codec.name));
  refuse(facts.has_momentum && c.codec && c.codec({})->traits().momentum,
         fmt::format("codec {} has the momentum in it, and the optimizer has one too: take optim.name sgd, or set "
                     "codec.momentum=0",
                     c.codec_name));
  const bool at_server = !rule.local_step;
  refuse(
      at_server && facts.needs_norms,
      "lars and lamb need the norms of whole parameters, but servers hold parts of them: take optim.name momentum or "
      "adam, or rule grad_mean");
  refuse(at_server && facts.clips_by_norm,
         "optim.clip_norm is of the whole gradient, but servers hold parts of it: take optim.clip_value, or rule "
         "grad_mean");
}

void Fitting::check_world() {
  refuse(
      facts.workers < exchange.least_workers,
      fmt::format("every replica of a server is on another rank: with {} workers set exchange.replicas to at most {}",
                  facts.workers, facts.workers));
  if (const std::string why = c.exchange->problem(facts.workers, static_cast<bool>(c.codec)); !why.empty())
    problems_.add({}, why);
  if (facts.steps > 0) {
    const std::int64_t tau = c.exchange->steps_between(c.when.tau), exchanges = (facts.steps + tau - 1) / tau;
    const std::int64_t most = c.sync.in_rounds() ? exchanges : exchanges * facts.workers;
    if (const std::string why = c.exchange->problem_within(most); !why.empty()) problems_.add({}, why);
    // Who is quick may take others' steps too, where these are not handed out beforehand.
    const std::int64_t of_a_worker = exchange.in_lockstep ? facts.steps : facts.steps * facts.workers;
    refuse(rule.model == RuleTraits::Model::shared && facts.workers > 1 && !c.when.at_end && tau > of_a_worker,
           fmt::format("with when.tau = {} the {} steps of this run have no exchange, and the model would stay as it "
                       "began: set when.tau to at most {}",
                       c.when.tau, facts.steps, facts.steps * c.when.tau / tau));
  }
  refuse(c.sync.kind == Sync::Kind::approximate && facts.workers > 1 && c.sync.sites > facts.workers,
         fmt::format("{} sites are more than the {} workers: set sync.sites to at most {}", c.sync.sites, facts.workers,
                     facts.workers));
  refuse(c.sync.kind == Sync::Kind::quorum && c.sync.backups >= facts.workers,
         fmt::format("sync quorum with {} backups needs more than {} workers", c.sync.backups, facts.workers));
  refuse(
      exchange.shared_memory && !facts.shares_memory,
      fmt::format("exchange {} writes into memory that all workers see: run it with --world threads or processes and "
                  "without --link, or take exchange server with sync async",
                  e));
}

}  // namespace

std::string why_not_early(const Composition& c) {
  const RuleTraits rule = c.rule->traits();
  const ExchangeTraits exchange = c.exchange->traits();
  if (!exchange.sends_early)
    return fmt::format(
        "exchange {} begins when the gradient is whole: take order whole, or exchange all_reduce or "
        "server",
        c.exchange_name);
  if (rule.quantity != RuleTraits::Quantity::gradient)
    return fmt::format("rule {} exchanges weights, which change after it: take order whole, or rule grad_mean",
                       c.rule_name);
  if (c.when.tau > 1 || c.when.probability < 1 || c.when.at_end)
    return "not every step has an exchange: take order whole, or leave out when.tau, probability and at_end";
  if (c.when.merges_steps())
    return "with when.n_push, n_fetch or warm_start not every step has an exchange: take order whole, or leave them "
           "out";
  if (c.sync.kind == Sync::Kind::quorum || c.sync.kind == Sync::Kind::a_bsp)
    return fmt::format("sync {} takes or leaves a worker's gradient as a whole: take order whole, or sync bsp",
                       to_text(c.sync.kind));
  return {};
}

void check_composition(const Composition& composition, const CompositionFacts& facts, Problems& problems) {
  Fitting(composition, facts, problems).check();
}

}  // namespace echelon
