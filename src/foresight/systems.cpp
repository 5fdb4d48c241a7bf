#include "foresight/systems.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "foresight/predict.h"
#include "graph/program.h"
#include "parallel/composition.h"
#include "parallel/step/thin_product.h"
#include "recipe/system_file.h"

namespace echelon::foresight {

namespace {

// Epochs until 98.5 % (docs/systems.md); exact training needs three.
struct EpochsOf {
  int epochs;
  std::vector<std::string_view> systems;
};
const std::vector<EpochsOf>& measured_epochs() {
  static const std::vector<EpochsOf> table{
      {2, {"downpour", "sparknet", "two_bit"}},
      {3,
       {"bf16", "bosen", "crossbow", "dogwild", "eamsgd", "essp", "fixed16", "flexpoint", "low_rank", "malt", "mlnet",
        "one_bit", "strom"}},
      {4, {"a_bsp",        "adam_project", "ako",
           "auto",         "cntk_1bit",    "d_psgd",
           "d_psgd_torus", "diloco",       "dynamic_rate",
           "easgd",        "fp16",         "gaia",
           "kylix",        "mpca",         "negative_momentum",
           "one_peer",     "parallel_sgd", "parameter_server",
           "rudra",        "slowmo",       "sparcml",
           "ssp",          "top_1_percent"}},
      {5,
       {"adaptive_threshold", "backup_workers", "bmuf", "dgc", "gosgd", "hogwild", "hogwildpp", "multiverso",
        "terngrad", "tree_easgd"}},
      {6, {"dc_asgd", "gossip_learning", "halp", "qsgd", "signsgd_majority", "value_bounds"}},
      {7, {"dorefa"}}};
  return table;
}

std::string kind_text(bool async, bool local, bool compressed) {
  std::string text;
  const auto add = [&](bool is, const char* word) {
    if (is) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(async, "async"), add(local, "local"), add(compressed, "compressed");
  return text;
}

bool has_one_server(const Options& exchange) {
  const auto it = exchange.items.find("servers");
  return it == exchange.items.end() ||
         (std::holds_alternative<std::int64_t>(it->second.value) && std::get<std::int64_t>(it->second.value) == 1);
}

}  // namespace

double measured_samples_factor(const std::string& system) {
  for (const EpochsOf& row : measured_epochs())
    if (std::ranges::find(row.systems, system) != row.systems.end()) return std::max(1.0, row.epochs / 3.0);
  return 0;
}

std::vector<SystemEstimate> estimate_systems(Disk& disk, const PreparedRun& prepared, const Platform& platform,
                                             const Allowed& allowed, const Prediction& best) {
  const int workers = platform.ranks();
  const Prediction whole = best.plan.splits_model() ? predict_whole(prepared, {.data = workers}, platform, {}) : best;
  double slowest = 0, rates = 0;  // seconds of computing in a step; steps a second of all workers at their own pace
  for (const RankPrediction& r : whole.ranks)
    if (r.compute > 0) slowest = std::max(slowest, r.compute), rates += 1 / r.compute;
  const double own_pace = rates > 0 ? static_cast<double>(whole.ranks.size()) / rates : slowest;
  const auto phases = prepared.model->training(1);
  ParameterTable table;
  for (const auto& phase : phases) table.include(phase.graph);
  const std::vector<CodecPiece> pieces = pieces_of(table, {0, table.floats()});
  FactorFacts factors{.batch = static_cast<std::size_t>(prepared.recipe.train.batch), .products = {}};
  for_each_thin_product(phases.front().graph, table,
                        [&](const ThinProduct& p, std::size_t) { factors.products.push_back(p); });

  std::vector<SystemEstimate> all;
  for (const std::string& name : system_names(disk)) {
    const double factor = measured_samples_factor(name);
    if (factor == 0) continue;
    try {
      const SystemFile s = read_system(disk, name);
      Problems problems;
      const Composition c = read_composition({s.name, s.rule, s.exchange, s.when, s.sync, s.codec, s.order}, problems);
      if (!problems.empty() || c.is_exact()) continue;
      const bool async = c.sync_name != "bsp", compressed = c.codec_name != "none";
      const bool local = c.when.tau > 1 || c.when.probability < 1 || c.when.at_end;
      if (!(async || local || compressed)) continue;
      if ((async && !allowed.async) || (local && !allowed.local) || (compressed && !allowed.compressed)) continue;
      check_composition(c,
                        {.workers = workers,
                         .steps = prepared.total_steps,
                         .phases = static_cast<int>(phases.size()),
                         .clips_by_norm = prepared.recipe.optim.items.contains("clip_norm"),
                         .shares_memory = platform.shares_memory()},
                        problems);
      if (!problems.empty() || !c.exchange->problem(workers, static_cast<bool>(c.codec)).empty()) continue;
      const auto traffic = traffic_per_step(c, workers, pieces, {}, CodecBytes::usual, factors);
      const LinkCosts& links = platform.links();
      // Through one server's link everything passes; otherwise each has its share.
      const bool central = c.exchange_name == "server" && has_one_server(s.exchange);
      const double through = central ? traffic.bytes / 2 : traffic.bytes / workers;
      const double sending = through * links.per_byte + traffic.messages / workers * links.latency;
      const double computing = async ? own_pace : slowest;
      // Whoever does not wait sends while he computes; with others, what backward does not hide comes on top.
      const double hidden = async ? computing : local ? 0 : computing / 2;
      all.push_back({.name = name,
                     .kind = kind_text(async, local, compressed),
                     .seconds = computing + std::max(0.0, sending - hidden),
                     .more_samples = factor,
                     .sent = traffic.bytes,
                     .source = "LeNet-5 on MNIST, 4 workers"});
    } catch (const Error&) {  // its file is another's to mend
    }
  }
  all.push_back({.name = "exact (" + to_string(best.plan) + ")",
                 .kind = "nothing",
                 .seconds = best.seconds,
                 .sent = best.sent(),
                 .source = "the best plan"});
  std::ranges::stable_sort(all, {}, &SystemEstimate::seconds_to_the_same);
  return all;
}

}  // namespace echelon::foresight
