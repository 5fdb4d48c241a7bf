#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

bool at_own_pace(const Composition& c) {
  const ExchangeTraits exchange = c.exchange->traits();
  return c.uses_messages() && !exchange.peers && !c.rule->traits().peers && !exchange.adds_what_comes;
}

void InRounds::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  Sync::accepts(c, facts, problems);
  refuse(problems, at_own_pace(c) && !c.rule->traits().sums,
         fmt::format("sync {} merges whole rounds, but rule {} merges contributions one by one: take sync "
                     "async",
                     c.sync_name, c.rule_name));
  refuse(problems, c.when.probability < 1 && c.uses_messages(),
         fmt::format("with sync {} every worker takes part in every round: leave out when.probability, "
                     "or take sync async",
                     c.sync_name));
}

void OnArrival::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  Sync::accepts(c, facts, problems);
  refuse(problems, at_own_pace(c) && !c.rule->traits().one_by_one,
         fmt::format("sync {} merges contributions as they come, but rule {} needs whole rounds: take sync "
                     "bsp{}",
                     c.sync_name, c.rule_name, c.rule_name == "grad_mean" ? ", or rule grad_push" : ""));
}

std::vector<Figure> OnArrival::figures(const ServerCounts& counts) const {
  std::vector<Figure> figures = Sync::figures(counts);
  figures.emplace_back("mean_staleness", counts.contributions > 0 ? counts.staleness / counts.contributions : 0);
  figures.emplace_back("contributions", counts.contributions / counts.keys);
  figures.emplace_back("least_speed", counts.least_speed);
  return figures;
}

void Bounded::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  OnArrival::accepts(c, facts, problems);
  refuse(problems, at_own_pace(c) && c.rule->traits().quantity == RuleTraits::Quantity::weights,
         fmt::format("sync {} bounds how stale gradients are, but rule {} exchanges weights: take sync "
                     "async",
                     c.sync_name, c.rule_name));
}

std::vector<Figure> Bounded::figures(const ServerCounts& counts) const {
  std::vector<Figure> figures = OnArrival::figures(counts);
  figures.emplace_back("mean_age", counts.steps > 0 ? counts.age / counts.steps : 0);
  figures.emplace_back("most_lead", counts.lead);
  return figures;
}

void SharingWork::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  OnArrival::accepts(c, facts, problems);
  refuse(problems, work_.common && facts.carries,
         "a model that carries values from batch to batch must get the following batch each time: set sync.work=own");
  refuse(problems, work_.common && facts.fixed_data,
         "a worker that takes whatever work is next sees the samples of others, but they stay where they are "
         "(data.partition = \"fixed\"): set sync.work=own");
}

Setting staleness_setting() { return {"staleness", "3", "steps by which a worker may lead the slowest"}; }

std::int64_t read_staleness(OptionReader& options) { return options.integer("staleness", 3, 0, 1'000'000); }

std::vector<Setting> with_work_settings(std::vector<Setting> own) {
  own.push_back({"work", "\"common\"",
                 "common: a worker that is ready takes the next batch; own: each has its part of every batch"});
  own.push_back(
      {"epoch_share", "1", "work own: an epoch ends when so much of it is done, without what slow workers have left"});
  return own;
}

WorkSharing read_work(OptionReader& options) {
  WorkSharing work;
  work.common = options.choice("work", "common", {"common", "own"}) == "common";
  work.epoch_share = options.number("epoch_share", 1, 0.01, 1);
  if (work.common && work.epoch_share < 1)
    options.problem("epoch_share",
                    "is for workers that have their own parts of an epoch, of which slow ones have some left; where "
                    "they share the work, all of it is done: set sync.work=own");
  return work;
}

}  // namespace echelon::syncs
