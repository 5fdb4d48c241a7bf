#include "cli/foresight/run_prediction.h"

#include <algorithm>

#include "base/error.h"
#include "cli/foresight/foreseen.h"
#include "foresight/blame.h"
#include "foresight/costs/measure.h"
#include "foresight/predict.h"
#include "foresight/rank_plans.h"
#include "run/memory_limit.h"
#include "run/run_plan.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

ForesightFlags flags_of(const WorldFlags& world, const std::string& recipe, int workers) {
  return {.recipe = recipe,
          .cluster = world.cluster,
          .link_text = world.link_text,
          .memory = {},
          .overrides = {},
          .hosts = {},
          .workers = workers,
          .link = world.link};
}

// A cluster that a simulation would have without a file.
bool is_this_machine(const WorldFlags& world) {
  return world.world.empty() || world.world == "processes" || world.world == "threads";
}

std::shared_ptr<const PredictedRun> predicted_run(const PreparedRun& prepared, PlanSpec plan, const Foreseen& foreseen,
                                                  const foresight::Platform& platform, int cores, bool simulated) {
  if (plan.data == 0) plan.data = platform.ranks() / plan.ranks_of_replica();
  PredictedRun run{
      .prediction = foresight::predict(prepared, plan, platform, {.cores_each = cores, .operations = true}),
      .kind = simulated ? "simulated" : foresight::kind_of(plan, platform)};
  if (!simulated)
    correct(run.prediction, foresight::correction_of(foreseen.outcomes(), run.kind, prepared.recipe.model_name));
  return std::make_shared<PredictedRun>(std::move(run));
}

// What a run of ranks that share memory allocates in all: there is one copy of parameters and state.
double bytes_in_common(const foresight::Prediction& p) {
  double all = 0;
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const RankBytes& b = p.ranks[r].bytes;
    all += static_cast<double>(b.all() - (r > 0 ? b.parameters + b.state : 0));
  }
  return all;
}

// Each rank's share of a step, in what the summary has counted.
std::vector<foresight::RankOutcome> ranks_of(const RunSummary& summary, const SampledSteps& sampled) {
  std::vector<foresight::RankOutcome> all;
  const auto steps = static_cast<double>(summary.steps);
  for (const RankSummary& r : summary.ranks) {
    foresight::RankOutcome& rank = all.emplace_back();
    rank.compute = r.times.compute / steps, rank.exchange = r.times.exchange / steps;
    for (std::size_t other = 0; other < r.times.waiting_for.size(); ++other)
      if (const double s = r.times.waiting_for[other]; s > 0) rank.waits[static_cast<int>(other)] = s / steps;
  }
  for (std::size_t r = 0; r < std::min(all.size(), sampled.operations.size()); ++r)
    all[r].operations = sampled.operations[r];
  return all;
}

// Costs of operations that this run has shown to be others.
bool refit_profile(const foresight::Prediction& p, const std::vector<foresight::RankOutcome>& ranks) {
  const auto disk = make_real_disk();
  std::string note;
  const std::string folder = foresight::usual_folder();
  foresight::Profile profile = foresight::load_profile(*disk, folder, note);
  if (!note.empty() || !foresight::refit(profile, p, ranks)) return false;
  foresight::save_profile(*disk, folder, profile);
  return true;
}

}  // namespace

std::shared_ptr<const PredictedRun> predict_run(const PreparedRun& prepared, const PlanSpec& plan,
                                                const WorldFlags& world, int workers) try {
  const bool simulated = world.world == "sim" && !world.cluster.empty();
  if (workers < 1 || workers > 64 || (!simulated && !is_this_machine(world)) || !world.straggler_texts.empty())
    return nullptr;
  if (!plan_facts(prepared, workers, 1).system.empty()) return nullptr;
  const ForesightFlags flags = flags_of(world, prepared.recipe.path, workers);
  const Foreseen foreseen(flags);
  const foresight::Profile& profile = foreseen.profile();
  if (!simulated && (!foresight::is_measured(prepared, profile) ||
                     (workers > 1 && !(profile.links.contains(workers) && profile.wires.contains(workers)))))
    return nullptr;
  return predicted_run(prepared, plan, foreseen, foreseen.platform(workers), cores_asked(world), simulated);
} catch (const Error&) {
  return nullptr;
}

std::shared_ptr<const PredictedRun> predict_on_network(const PreparedRun& prepared, const PlanSpec& plan,
                                                       const WorldFlags& world, const std::vector<std::string>& hosts,
                                                       const LinkCosts& links, bool one_memory) try {
  const int workers = static_cast<int>(hosts.size());
  if (workers < 2 || workers > 64 || !world.straggler_texts.empty() || !world.link_text.empty()) return nullptr;
  const ForesightFlags flags = flags_of({}, prepared.recipe.path, workers);
  const Foreseen foreseen(flags);
  if (!foresight::is_measured(prepared, foreseen.profile())) return nullptr;
  foresight::Profile profile = foreseen.profile();
  profile.links[workers] = links;
  const auto platform = one_memory ? foresight::Platform::this_machine(profile, workers)
                                   : foresight::Platform::on_network(profile, hosts, links);
  return predicted_run(prepared, plan, foreseen, platform, world.cores, false);
} catch (const Error&) {
  return nullptr;
}

void keep_host_pairs(const std::vector<RunCluster::HostPair>& pairs) try {
  if (pairs.empty()) return;
  const auto disk = make_real_disk();
  std::string note;
  const std::string folder = foresight::usual_folder();
  foresight::Profile profile = foresight::load_profile(*disk, folder, note);
  if (!note.empty()) return;
  for (const RunCluster::HostPair& p : pairs) profile.hosts[std::minmax(p.a, p.b)] = p.cost;
  foresight::save_profile(*disk, folder, profile);
} catch (const DiskError&) {  // measured again by the next run
}

std::string store_outcome(const PredictedRun& predicted, const RunSummary& summary, const SampledSteps& sampled,
                          const RunFolder& folder, const PreparedRun& prepared, nlohmann::ordered_json& json) {
  if (summary.samples_per_s <= 0 || summary.steps < 5) return "";
  const foresight::Prediction& p = predicted.prediction;
  const auto clock = make_real_clock();
  const bool in_common = predicted.kind.starts_with("whole in memory");
  const auto count = static_cast<double>(p.ranks.size());
  foresight::Outcome o{.run = folder.name(),
                       .model = prepared.recipe.model_name,
                       .plan = to_string(p.plan),
                       .kind = predicted.kind,
                       .workers = p.workers,
                       .at = clock->unix_seconds(),
                       .correction = p.correction,
                       .predicted = p.seconds,
                       .measured = sampled.seconds > 0
                                       ? sampled.seconds
                                       : static_cast<double>(prepared.recipe.train.batch) / summary.samples_per_s,
                       .predicted_bytes = in_common ? bytes_in_common(p) : static_cast<double>(p.most_bytes()),
                       .predicted_sent = p.sent(),
                       .from_roofline = 1 - p.measured};
  for (const foresight::RankPrediction& r : p.ranks)
    o.predicted_compute += r.compute / count, o.predicted_waits += r.waiting() / count / p.seconds;
  const std::vector<foresight::RankOutcome> ranks = ranks_of(summary, sampled);
  for (const foresight::RankOutcome& r : ranks) {
    o.measured_compute += r.compute / static_cast<double>(ranks.size());
    for (const auto& [other, seconds] : r.waits)
      o.measured_waits += seconds / static_cast<double>(ranks.size()) / o.measured;
  }
  for (const Figure& f : summary.system)
    if (f.first.starts_with("bytes_rank_") || f.first == "bytes_in_common")
      o.measured_bytes = std::max(o.measured_bytes, f.second);
  if (summary.bytes > 0) o.measured_sent = summary.bytes / static_cast<double>(summary.steps);
  o.why_off = foresight::blame(p, o.measured, ranks);
  const bool real = o.kind != "simulated";
  try {
    o.refitted = real && !o.why_off.empty() && refit_profile(p, ranks);
    if (real)
      save_outcome(*make_real_disk(), foresight::usual_folder(), o, fmt::format("{:.0f}-{}", o.at * 1e6, process_id()));
  } catch (const DiskError&) {  // the run's own summary has it
  }
  json["predicted"] = {
      {"seconds", o.predicted},     {"samples_per_s", p.samples_per_second()}, {"error", o.error()},
      {"bytes", o.predicted_bytes}, {"sent_bytes", o.predicted_sent},          {"waiting_share", o.predicted_waits},
      {"correction", o.correction}};
  json["measured"] = {{"seconds", o.measured},
                      {"bytes", o.measured_bytes},
                      {"sent_bytes", o.measured_sent},
                      {"waiting_share", o.measured_waits}};
  auto& parts = json["predicted"]["differences"] = nlohmann::ordered_json::array();
  for (const foresight::Difference& d : foresight::differences(p, ranks))
    if (parts.size() < 8) parts.push_back({{"what", d.what}, {"predicted_s", d.predicted}, {"measured_s", d.measured}});
  if (!o.why_off.empty()) json["predicted"]["why_off"] = o.why_off;
  if (o.why_off.empty()) return "";
  return o.why_off + (o.refitted ? ". The profile has the measured costs now" : "");
}

PlanSpec choose_plan(const PreparedRun& prepared, const WorldFlags& world, int workers, const std::string& memory) {
  if (workers == 0) bad_input("--plan auto needs to know the workers before they start: say --workers N");
  if (!plan_facts(prepared, workers, 1).system.empty())
    bad_input("--plan auto is for exact training: leave out --system, or name the plan");
  ForesightFlags flags = flags_of(world, prepared.recipe.path, workers);
  if (world.world == "sim" && world.cluster.empty())
    bad_input("--plan auto in a simulation needs the cluster's file: --cluster FILE");
  Foreseen foreseen(flags);
  foreseen.measure(prepared, workers);
  const std::size_t limit = memory.empty() ? 0 : read_memory_size(memory, "--memory");
  const foresight::Platform platform = foreseen.platform(workers);
  const foresight::Ranking ranking = foresight::rank_plans(
      prepared, platform, {.memory = limit, .cores_each = world.cores, .outcomes = &foreseen.outcomes()});
  if (ranking.plans.empty())
    bad_input("--plan auto: none of {} legal plans fits into --memory {}; take more workers or more train.shards",
              ranking.legal, memory);
  fmt::print(stderr, "plan auto: {}\n",
             ranking.why.empty() ? to_string(ranking.plans.front().prediction.plan) : ranking.why.front());
  return ranking.plans.front().prediction.plan;
}

}  // namespace echelon::cli
