// Which parts fit together: every part is asked, and knows its own reasons. Here is only what no part owns.

#include "parallel/composition.h"

namespace echelon {

namespace {

void check_codecs(const Composition& c, const CompositionFacts& facts, Problems& problems) {
  const std::vector<CodecPiece> any{{64, 8}};
  CodecUse use{.codec = c.codec_name,
               .rule = c.rule_name,
               .weights = !c.rule->traits().changes,
               .optimizer_has_momentum = facts.has_momentum};
  if (c.codec) c.codec(any)->accepts(use, problems);
  use.candidate = true;
  for (const NamedCodec& candidate : c.codec_choice) {
    use.codec = candidate.name;
    candidate.maker(any)->accepts(use, problems);
  }
}

void check_sync(const Composition& c, const CompositionFacts& facts, Problems& problems) {
  const RuleTraits rule = c.rule->traits();
  const ExchangeTraits exchange = c.exchange->traits();
  const SyncTraits sync = c.sync.traits();
  const std::string &r = c.rule_name, &e = c.exchange_name, &s = c.sync_name;
  if (c.uses_messages() && !exchange.peers && !rule.peers && !exchange.adds_what_comes) {
    refuse(problems, sync.in_rounds && !rule.sums,
           fmt::format("sync {} closes rounds, but rule {} merges contributions one by one: take sync async", s, r));
    refuse(problems, !sync.in_rounds && !rule.one_by_one,
           fmt::format("sync {} merges contributions as they come, but rule {} needs whole rounds: take sync bsp{}", s,
                       r, r == "grad_mean" ? ", or rule grad_push" : ""));
    refuse(
        problems,
        c.sync.kind == Sync::Kind::quorum && rule.quantity == RuleTraits::Quantity::gradient && rule.local_step,
        fmt::format("with sync {} a worker can miss a round, and with rule {} its weights would then differ for ever: "
                    "take rule grad_push, which makes the same step where all can read the result",
                    s, r));
    refuse(problems, sync.bounded && rule.quantity == RuleTraits::Quantity::weights,
           fmt::format("sync {} bounds how stale gradients are, but rule {} exchanges weights: take sync async", s, r));
    refuse(problems, c.sync.kind == Sync::Kind::value && rule.quantity == RuleTraits::Quantity::weights,
           fmt::format("sync value bounds how far gradients may move the weights, but rule {} exchanges weights: take "
                       "sync async",
                       r));
  }
  refuse(problems, c.sync.kind == Sync::Kind::soft && !rule.decoupled,
         fmt::format("sync soft lets workers go on while their answers travel, which rule {} does not bear: take sync "
                     "bsp, or rule mpca",
                     r));
  refuse(problems, c.sync.kind == Sync::Kind::soft && c.codec,
         fmt::format("sync soft answers with plain weights: take codec none instead of {}", c.codec_name));
  refuse(problems, c.sync.kind == Sync::Kind::approximate && !exchange.sites,
         fmt::format("sync approximate is between sites with servers of their own, which exchange {} has not: take "
                     "exchange server without fanout, two_level and replicas, or sync async",
                     e));
  refuse(problems,
         c.sync.kind == Sync::Kind::approximate && !(rule.movable && rule.quantity == RuleTraits::Quantity::gradient),
         fmt::format("sync approximate sends changes of weights between sites, and rule {} does not take them: take "
                     "rule grad_push, or sync async",
                     r));
  refuse(problems, exchange.sums_on_the_way && sync.per_worker,
         fmt::format("sync {} looks at every worker's clock, but exchange {} adds contributions up on the way: take "
                     "sync bsp or async, or leave out exchange.fanout and two_level",
                     s, e));
  refuse(problems, exchange.no_own_gradient && sync.hands_in_early,
         "exchange.factors are of all samples of a worker's part, but with sync a_bsp it may have done only some of "
         "them: take sync quorum, or leave out exchange.factors");
  refuse(problems, c.when.probability < 1 && sync.in_rounds && c.uses_messages(),
         fmt::format("with sync {} every worker comes to every round: leave out when.probability, or take async", s));
  refuse(problems, facts.carries && c.sync.common_work,
         "a model that carries values from batch to batch must get the following batch each time: set sync.work=own");
  if (facts.workers == 0) return;
  refuse(problems, c.sync.kind == Sync::Kind::approximate && facts.workers > 1 && c.sync.sites > facts.workers,
         fmt::format("{} sites are more than the {} workers: set sync.sites to at most {}", c.sync.sites, facts.workers,
                     facts.workers));
  refuse(problems, c.sync.kind == Sync::Kind::quorum && c.sync.backups >= facts.workers,
         fmt::format("sync quorum with {} backups needs more than {} workers", c.sync.backups, facts.workers));
}

}  // namespace

void check_composition(const Composition& c, const CompositionFacts& facts, Problems& problems) {
  c.rule->accepts(c, facts, problems);
  c.exchange->accepts(c, facts, problems);
  c.when.accepts(c, facts, problems);
  c.sync.accepts(c, facts, problems);
  check_sync(c, facts, problems);
  check_codecs(c, facts, problems);
  c.order.accepts(c, facts, problems);
  refuse(problems, facts.phases > 1,
         "a model that trains in phases (a GAN) has one gradient for each: only the system bsp does that");
}

}  // namespace echelon
