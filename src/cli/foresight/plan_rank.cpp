#include "cli/foresight/plan_rank.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/foresight/foreseen.h"
#include "cli/foresight/plan_sweep.h"
#include "cli/report.h"
#include "cli/runs/run_table.h"
#include "foresight/advice.h"
#include "foresight/machine_cluster.h"
#include "foresight/plan_text.h"
#include "foresight/prediction_text.h"
#include "foresight/search/search.h"
#include "run/memory_limit.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

struct RankSettings {
  ForesightFlags flags;
  std::string output, sweep, svg, allow, search, as_cluster;
  std::int64_t most = 10;
  bool json = false, weak = false;
};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

foresight::AdviceFacts facts_of(const RankSettings& s, const PreparedRun& prepared, const Foreseen& foreseen) {
  const std::size_t limit = s.flags.memory.empty() ? 0 : read_memory_size(s.flags.memory, "--memory");
  return {.recipe = s.flags.recipe,
          .workers = foreseen.workers(),
          .cores = foreseen.here() ? foreseen.profile().cores : foreseen.workers(),
          .batch = prepared.recipe.train.batch,
          .shards = prepared.recipe.train.shards,
          .here = foreseen.here(),
          .memory = limit};
}

void write_best(const RankSettings& s, const foresight::RankedPlan& best) {
  const std::string about = fmt::format(
      "Chosen by: echelon plan {} --workers {}{}\nPredicted: {} a step, {} samples/s, {} on a rank.\n", s.flags.recipe,
      best.prediction.workers, s.flags.cluster.empty() ? "" : " --cluster " + s.flags.cluster,
      human_duration(best.prediction.seconds), human_count(best.prediction.samples_per_second()),
      human_bytes(static_cast<double>(best.prediction.most_bytes())));
  write_file_atomically(*make_real_disk(), s.output, foresight::plan_toml(best.prediction.plan, about));
}

void rank(const RankSettings& s) {
  if (s.flags.recipe.empty())
    bad_input("`echelon plan` takes a recipe, or one of: show, list, grade; `echelon plan --help` says what each does");
  if (!s.output.empty() && !s.output.ends_with(".toml"))
    bad_input("-o {}: a plan's file ends in .toml, so that --plan takes it for one", s.output);
  if (!s.sweep.empty() && !s.output.empty()) bad_input("-o writes one plan: leave out --sweep, or name --workers");
  if (s.sweep.empty() && (!s.svg.empty() || s.weak)) bad_input("--svg and --weak belong to --sweep");
  if (!s.as_cluster.empty() && (!s.sweep.empty() || !s.flags.cluster.empty() || !s.flags.hosts.empty()))
    bad_input("--as-cluster writes this machine: leave out --sweep, --cluster and --hosts");
  const std::size_t limit = s.flags.memory.empty() ? 0 : read_memory_size(s.flags.memory, "--memory");
  const Allowed allowed = read_allowed(s.allow);
  if (!s.search.empty() && !foresight::find_search(s.search)) {
    std::string names;
    for (const foresight::SearchKind& kind : foresight::searches())
      names += (names.empty() ? "" : ", ") + std::string(kind.name);
    bad_input("--search {}: the searches are {}", s.search, names);
  }
  Foreseen foreseen(s.flags);
  if (!foreseen.note().empty()) fmt::print(stderr, "{}\n", foreseen.note());
  if (!s.sweep.empty())
    return sweep_workers(
        {.flags = s.flags, .sweep = s.sweep, .svg = s.svg, .json = s.json, .weak = s.weak, .memory = limit}, foreseen);

  const PreparedRun prepared = foreseen.prepare(s.flags.overrides);
  foreseen.measure(prepared, foreseen.workers());
  const foresight::Platform platform = foreseen.platform(foreseen.workers());
  const foresight::Ranking ranking = foresight::rank_plans(
      prepared, platform,
      {.memory = limit, .async = allowed.async, .outcomes = &foreseen.outcomes(), .search = s.search});
  const auto advice = foresight::advice_before(ranking, facts_of(s, prepared, foreseen));
  if (!s.output.empty() && !ranking.plans.empty()) write_best(s, ranking.plans.front());
  if (!s.as_cluster.empty())
    write_file_atomically(*make_real_disk(), s.as_cluster, foresight::machine_cluster_toml(prepared, platform));
  const auto systems = estimate_systems(prepared, platform, allowed, ranking);

  if (s.json) {
    Json json{{"recipe", s.flags.recipe},
              {"workers", foreseen.workers()},
              {"legal", ranking.legal},
              {"too_large", ranking.too_large},
              {"alone_seconds", ranking.alone},
              {"plans", Json::array()},
              {"why", ranking.why},
              {"found", Json::array()},
              {"advice", Json::array()},
              {"systems", to_json(systems)}};
    for (const foresight::RankedPlan& r : ranking.plans) json["plans"].push_back(to_json(r));
    for (const foresight::FoundStrategy& f : ranking.found)
      json["found"].push_back({{"search", f.search}, {"layers", f.layers}, {"seconds", f.seconds}, {"plan", f.plan}});
    for (const foresight::Advice& a : advice) json["advice"].push_back({{"what", a.what}, {"command", a.command}});
    fmt::print("{}\n", json.dump());
    if (ranking.plans.empty()) throw EndWith{2};
    return;
  }
  const bool guessed = !ranking.plans.empty() && foreseen.here() && ranking.plans.front().prediction.measured < 0.9;
  fmt::print("{} on {} worker{} ({}): {} legal plans{}\n\n", s.flags.recipe, foreseen.workers(),
             foreseen.workers() == 1 ? "" : "s",
             foreseen.here() ? !s.flags.hosts.empty()      ? fmt::format("{}", fmt::join(s.flags.hosts, ", "))
                               : s.flags.link_text.empty() ? "this machine"
                                                           : "this machine, links of " + s.flags.link_text
                             : s.flags.cluster,
             ranking.legal, ranking.too_large > 0 ? fmt::format(", {} need too much memory", ranking.too_large) : "");
  if (!ranking.plans.empty()) fmt::print("{}\n", ranking_text(ranking, static_cast<std::size_t>(s.most)));
  for (const std::string& why : ranking.why) fmt::print("{}\n", why);
  if (!ranking.plans.empty()) {
    const foresight::Prediction& best = ranking.plans.front().prediction;
    for (const std::string& line : foresight::details_of(best, platform)) fmt::print("{}\n", line);
  }
  if (!s.search.empty())
    for (const foresight::FoundStrategy& f : ranking.found)
      fmt::print("\n{} found ({} a step by its own count): {}\n{}\n", f.search, human_duration(f.seconds), f.layers,
                 f.plan.empty() ? "no plan has that shape" : "as a plan: " + f.plan);
  if (guessed) fmt::print("\nMost operations of this network were not measured here: times are those of a roofline.\n");
  print_systems(systems);
  if (!advice.empty()) fmt::print("\n");
  for (const foresight::Advice& a : advice)
    fmt::print("{}{}\n", a.what, a.command.empty() ? "" : "\n  try: " + a.command);
  if (!s.as_cluster.empty()) fmt::print("\nwrote {}\n", s.as_cluster);
  if (!ranking.plans.empty()) {
    if (!s.output.empty()) fmt::print("\nwrote {}\n", s.output);
    const PlanSpec& best = ranking.plans.front().prediction.plan;
    if (!best.layers.empty() && s.output.empty())
      fmt::print("\nits layers are split one by one, which takes a file: -o best.toml writes it\n");
    else if (foreseen.here() && s.flags.hosts.empty())
      fmt::print("\ntrain with it: echelon train {} --workers {} --plan {}\n", s.flags.recipe, foreseen.workers(),
                 s.output.empty() ? to_string(best) : s.output);
  } else {
    throw EndWith{2};
  }
}

}  // namespace

Json to_json(const foresight::RankedPlan& r) {
  const foresight::Prediction& p = r.prediction;
  Json json{{"plan", to_string(p.plan)},
            {"replayed", r.replayed},
            {"found_by", r.found_by},
            {"seconds", p.seconds},
            {"samples_per_s", p.samples_per_second()},
            {"efficiency", r.efficiency},
            {"compute_s", p.compute},
            {"exchange_s", p.exchange},
            {"waiting_s", p.waiting()},
            {"bytes", p.most_bytes()},
            {"sent_bytes", p.sent()},
            {"measured", p.measured},
            {"correction", p.correction},
            {"own_result", p.plan.has_own_result()},
            {"ranks", Json::array()},
            {"parts", Json::object()}};
  for (const foresight::RankPrediction& rank : p.ranks) {
    Json waits = Json::object();
    for (const auto& [other, seconds] : rank.waits) waits[other < 0 ? "all" : std::to_string(other)] = seconds;
    Json sent_to = Json::object();
    for (const auto& [other, bytes] : rank.sent_to) sent_to[std::to_string(other)] = bytes;
    if (json["ranks"].size() < 64)
      json["ranks"].push_back({{"compute_s", rank.compute},
                               {"exchange_s", rank.exchange},
                               {"waiting_for_s", waits},
                               {"sent_bytes", rank.sent},
                               {"sent_to_bytes", sent_to},
                               {"parameters", rank.bytes.parameters},
                               {"contributions", rank.bytes.contributions},
                               {"state", rank.bytes.state},
                               {"activations", rank.bytes.activations},
                               {"messages", rank.bytes.messages},
                               {"model", rank.bytes.model},
                               {"bytes", rank.bytes.all()}});
  }
  for (const auto& [what, seconds] : p.parts) json["parts"][what] = seconds;
  return json;
}

std::string ranking_text(const foresight::Ranking& ranking, std::size_t most) {
  TextTable table({"plan", "step", "samples/s", "efficiency", "memory", "sent", "compute", "sum+update", "waits", ""});
  for (std::size_t i = 0; i < std::min(most, ranking.plans.size()); ++i) {
    const foresight::RankedPlan& r = ranking.plans[i];
    const foresight::Prediction& p = r.prediction;
    table.add({to_string(p.plan), human_duration(p.seconds), human_count(p.samples_per_second()), percent(r.efficiency),
               human_bytes(static_cast<double>(p.most_bytes())), human_bytes(p.sent()), percent(p.compute / p.seconds),
               percent(p.exchange / p.seconds), percent(p.waiting() / p.seconds),
               p.plan.has_own_result()      ? "own result"
               : !r.replayed                ? "estimate"
               : r.found_by == "exhaustive" ? ""
                                            : r.found_by});
  }
  return table.text();
}

void add_plan_rank(Verb verb) {
  auto s = std::make_shared<RankSettings>();
  verb.add_option("recipe", s->flags.recipe, "A recipe (TOML): rank all plans for it");
  add_foresight_flags(verb, s->flags);
  verb.add_option("-o,--output", s->output, "Write the best plan into this file, for --plan FILE.toml");
  verb.add_option(
      "--as-cluster", s->as_cluster,
      "Also write this machine, as measured for the recipe, into a cluster file: for --world sim --cluster");
  verb.add_option("--most", s->most, "Plans to print").show_default();
  verb.add_option(
      "--allow", s->allow,
      "Also what changes the result: async, local, compressed (with commas); times to the same accuracy are "
      "estimates");
  verb.add_option("--search", s->search,
                  "Only what one search finds: exhaustive, layer_wise, partition, markov, beam (default: all of them)");
  verb.add_option("--sweep", s->sweep, "The best plan for many numbers of workers: workers=1..1024");
  verb.add_flag("--weak", s->weak, "With --sweep: batch and micro-batches grow with the workers");
  verb.add_option("--svg", s->svg, "With --sweep: also draw the curve into this file");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.action([s, verb] {
    for (const Verb sub : verb.subcommands())
      if (sub.called()) return;
    rank(*s);
  });
}

}  // namespace echelon::cli
