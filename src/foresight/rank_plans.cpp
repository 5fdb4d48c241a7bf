#include "foresight/rank_plans.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "foresight/costs/measure.h"
#include "foresight/estimate.h"
#include "foresight/search/network.h"
#include "graph/program.h"
#include "run/run_plan.h"

namespace echelon::foresight {

namespace {

std::tuple<int, int, int> degrees_of(const PlanSpec& p) { return {p.data, p.tensor, p.pipeline}; }

// What one worker with one core needs for a step.
double alone_seconds(const PreparedRun& prepared, const Platform& platform, const LayerTable& table) {
  if (!platform.is_here()) return table.shards * table.seconds();
  const Platform one = Platform::this_machine(*platform.profile(), 1);
  return predict_whole(prepared, {.data = 1}, one, {.cores_each = 1}).seconds;
}

// What searches over layers find besides: stages cut by what layers were measured to take, and layers that are split in
// different ways.
class LayerSearches {
 public:
  LayerSearches(const LayerTable& table, const Platform& platform, const PlanFacts& facts,
                std::vector<RankedPlan>& plans, std::vector<FoundStrategy>& found)
      : problem_(search_problem(table, platform)), facts_(facts), plans_(plans), found_(found) {
    problem_.mixed = false;  // no plan has layers with both
  }

  void run(const std::string& search) {
    SearchProblem p = problem_;
    p.parts = search != "partition";
    add(search, p, find_search(search)->find(p, {}));
    if (search != "partition") return;
    for (int pipeline = 2; pipeline <= std::min<int>(p.devices, static_cast<int>(facts_.layers.size())); ++pipeline)
      if (p.devices % pipeline == 0) {  // one device for each stage, replicas of all of it
        SearchProblem chain = p;
        chain.devices = pipeline;
        for (SearchLayer& l : chain.layers) l.weight_bytes = 1e15;  // no replicas within a stage
        Strategy cut = partition_search(chain, {});
        if (cut.layers.back().stage + 1 != pipeline) continue;
        for (LayerPlace& at : cut.layers) at.replicas = p.devices / pipeline;
        cut.seconds = strategy_seconds(p, cut.layers);
        add(search, p, cut);
      }
  }

 private:
  void add(const std::string& search, const SearchProblem& p, const Strategy& strategy) {
    const std::optional<PlanSpec> plan = plan_of(p, strategy, facts_);
    const bool works = plan && plan->data * plan->ranks_of_replica() == p.devices;
    found_.push_back({search, to_string(p, strategy), strategy.seconds, works ? echelon::to_string(*plan) : ""});
    if (!works || std::ranges::any_of(plans_, [&](const RankedPlan& r) { return r.prediction.plan == *plan; })) return;
    plans_.push_back({.prediction = {.plan = *plan, .workers = p.devices}, .found_by = search});
  }

  SearchProblem problem_;
  const PlanFacts& facts_;
  std::vector<RankedPlan>& plans_;
  std::vector<FoundStrategy>& found_;
};

void search_layers(const LayerTable& table, const Platform& platform, const PlanFacts& facts, const std::string& only,
                   std::vector<RankedPlan>& plans, std::vector<FoundStrategy>& found) {
  constexpr int most_devices = 64;  // the searches grow with the square of them and more
  if (platform.ranks() < 2 || platform.ranks() > most_devices || facts.phases > 1) return;
  LayerSearches all(table, platform, facts, plans, found);
  for (const SearchKind& kind : searches())  // every strategy of a real network is too many
    if (kind.name != "exhaustive" && (only.empty() || only == kind.name)) all.run(std::string(kind.name));
}

std::string milliseconds(double seconds) { return human_duration(seconds); }

// The sentences beside the best plan: what it spends its time on, and what the nearest of another kind would do.
std::vector<std::string> reasons(const Ranking& r) {
  std::vector<std::string> why;
  if (r.plans.empty()) return why;
  const Prediction& best = r.plans.front().prediction;
  const double share = best.seconds > 0 ? best.compute / best.seconds : 0;
  why.push_back(
      fmt::format("{}: {} a step; the rank that computes longest does so for {:.0f} % of it, {:.0f} % is sums "
                  "and updates, {:.0f} % waiting",
                  to_string(best.plan), milliseconds(best.seconds), 100 * share, 100 * best.exchange / best.seconds,
                  100 * best.waiting() / best.seconds));
  const auto compare = [&](const char* what, auto&& is) {
    for (const RankedPlan& other : r.plans)
      if (is(other.prediction.plan)) {
        const Prediction& p = other.prediction;
        const double slower = p.seconds / best.seconds - 1;
        std::string cause = p.waiting() / p.seconds > best.waiting() / best.seconds + 0.02 ? "ranks wait for each other"
                            : p.exchange > best.exchange * 1.05                            ? "more is summed and sent"
                            : p.compute > best.compute * 1.02 ? "the longest rank computes more"
                                                              : "about the same";
        why.push_back(fmt::format("{} ({}): {:+.0f} %, {}; {} a rank instead of {}", what, to_string(p.plan),
                                  100 * slower, cause, human_bytes(static_cast<double>(p.most_bytes())),
                                  human_bytes(static_cast<double>(best.most_bytes()))));
        return;
      }
  };
  const PlanSpec& b = best.plan;
  if (b.splits_model()) compare("every rank the whole model", [](const PlanSpec& p) { return !p.splits_model(); });
  if (b.pipeline == 1) compare("stages", [](const PlanSpec& p) { return p.pipeline > 1; });
  if (b.tensor == 1) compare("slices of layers", [](const PlanSpec& p) { return p.tensor > 1; });
  if (b.zero == 0) compare("shared state", [](const PlanSpec& p) { return p.zero > 0; });
  if (b.pipeline > 1)
    compare("another schedule",
            [&](const PlanSpec& p) { return p.pipeline == b.pipeline && p.schedule != b.schedule; });
  return why;
}

}  // namespace

std::vector<PlanSpec> candidate_plans(const PlanFacts& facts, bool async) {
  constexpr int few_workers = 32;
  std::vector<PlanSpec> plans;
  if (facts.workers <= few_workers) {
    plans = legal_plans(facts);
  } else {  // the same with chunks of powers of two, and recomputation of everything or nothing
    const int layers = static_cast<int>(facts.layers.size());
    for (int each = 1; each <= facts.workers; ++each) {
      if (facts.workers % each != 0) continue;
      for (int tensor = 1; tensor <= std::min(each, facts.slices); ++tensor) {
        if (each % tensor != 0) continue;
        PlanSpec plan{.data = facts.workers / each, .pipeline = each / tensor, .tensor = tensor};
        if (plan.pipeline > layers) continue;
        for (const char* schedule : {"1f1b", "interleaved", "zero_bubble"})
          for (const int chunks : {1, 2, 4, 8}) {
            if (plan.pipeline == 1 && (chunks > 1 || schedule != std::string_view("1f1b"))) continue;
            if (plan.pipeline * chunks > layers) continue;
            for (const char* recompute : {"none", "all"})
              for (int zero = 0; zero <= 3; ++zero) {
                plan.schedule = schedule, plan.chunks = chunks, plan.recompute = recompute, plan.zero = zero;
                if (PlanSpec filled = plan; refusals(filled, facts).empty()) plans.push_back(filled);
              }
          }
      }
    }
  }
  if (async)
    for (int each = 2; each <= facts.workers; ++each) {
      if (facts.workers % each != 0) continue;
      PlanSpec plan{.data = facts.workers / each, .pipeline = each, .schedule = "pipedream"};
      if (refusals(plan, facts).empty()) plans.push_back(plan);
    }
  return plans;
}

Ranking rank_plans(const PreparedRun& prepared, const Platform& platform, const RankOptions& options) {
  Ranking result;
  const PlanFacts facts = plan_facts(prepared, platform.ranks(), 1);
  const LayerTable table = layer_table(prepared, platform);
  result.alone = alone_seconds(prepared, platform, table);
  std::vector<RankedPlan> all;
  // Where a copy of the whole model would take much of what a rank may have, only rank 0 has one, in a file.
  const bool evaluates_on_first = options.memory > 0 && 4 * table.floats > 0.25 * static_cast<double>(options.memory);
  const bool every_plan = options.search.empty() || options.search == "exhaustive";
  std::vector<PlanSpec> candidates{PlanSpec{.data = platform.ranks()}};
  if (every_plan) candidates = candidate_plans(facts, options.async);
  for (PlanSpec& plan : candidates) {
    if (evaluates_on_first && plan.splits_model()) plan.evaluate = "first";
    all.push_back({.prediction = estimate(table, plan, platform)});
  }
  std::ranges::stable_sort(all, {}, [](const RankedPlan& r) { return r.prediction.seconds; });

  search_layers(table, platform, facts, options.search, all, result.found);
  for (RankedPlan& r : all)
    if (evaluates_on_first && r.prediction.plan.splits_model()) r.prediction.plan.evaluate = "first";
  result.legal = all.size();

  // The quickest, what searches have found, and the quickest of all degrees, exactly.
  constexpr std::size_t most_layers = 256;  // of a network that thousands of ranks train whole: else an estimate too
  std::set<std::tuple<int, int, int>> seen;
  int replayed = 0;
  for (RankedPlan& r : all) {
    const PlanSpec& plan = r.prediction.plan;
    const bool new_degrees = seen.insert(degrees_of(plan)).second;
    const bool whole = !plan.splits_model();
    if (platform.ranks() > options.most_replayed_ranks && (!whole || table.layers.size() > most_layers)) continue;
    const bool found = r.prediction.seconds == 0;
    if (!new_degrees && !found && replayed >= options.most_replayed && !whole) continue;
    if (options.memory > 0 && r.prediction.most_bytes() > 2 * options.memory) continue;  // hopeless by estimate
    const RankBytes estimated = found ? RankBytes{} : r.prediction.ranks.front().bytes;
    r.prediction = predict(prepared, plan, platform, {.cores_each = options.cores_each});
    if (r.prediction.ranks.front().bytes.all() == 0)  // more ranks than are looked at one by one
      for (RankPrediction& rank : r.prediction.ranks) rank.bytes = estimated;
    r.replayed = true;
    ++replayed;
  }
  for (RankedPlan& r : all) {
    if (options.outcomes)
      correct(r.prediction,
              correction_of(*options.outcomes, kind_of(r.prediction.plan, platform), prepared.recipe.model_name));
    r.efficiency = r.prediction.seconds > 0 ? result.alone / (r.prediction.seconds * platform.ranks()) : 0;
    if (options.memory > 0 && r.prediction.most_bytes() > options.memory)
      ++result.too_large;
    else
      result.plans.push_back(std::move(r));
  }
  // What was replayed comes before estimates that only look as quick.
  std::ranges::stable_sort(result.plans, [](const RankedPlan& a, const RankedPlan& b) {
    return a.replayed != b.replayed ? a.replayed : a.prediction.seconds < b.prediction.seconds;
  });
  if (platform.ranks() > options.most_replayed_ranks)
    std::ranges::stable_sort(result.plans, {}, [](const RankedPlan& r) { return r.prediction.seconds; });
  result.why = reasons(result);
  return result;
}

}  // namespace echelon::foresight
