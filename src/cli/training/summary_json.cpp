#include "cli/training/summary_json.h"

#include "cli/answers/metric_text.h"

namespace echelon::cli {

namespace {

nlohmann::ordered_json to_json(const RankTimes& t, double input) {
  nlohmann::ordered_json waiting = nlohmann::ordered_json::object();
  for (std::size_t r = 0; r < t.waiting_for.size(); ++r)
    if (t.waiting_for[r] > 0) waiting[std::to_string(r)] = t.waiting_for[r];
  nlohmann::ordered_json all{
      {"compute_s", t.compute}, {"exchange_s", t.exchange}, {"input_s", input}, {"waiting_for_s", waiting}};
  if (const BucketWait& b = t.bucket; b.bucket >= 0)
    all["bucket_wait"] = {{"bucket", b.bucket + 1}, {"of", b.buckets}, {"for_rank", b.rank}, {"seconds", b.seconds}};
  return all;
}

}  // namespace

nlohmann::ordered_json to_json(const RunSummary& r, const RunFolder& folder, const PreparedRun& prepared,
                               const World& world) {
  nlohmann::ordered_json j{{"steps", r.steps}, {"epochs", r.epochs}, {"train_loss", r.train_loss}};
  if (r.train_accuracy >= 0) j["train_accuracy"] = r.train_accuracy;
  if (r.validation)
    for (const auto& [name, value] : named_values(*r.validation, "val_")) j[name] = value;
  if (r.test) {
    for (const auto& [name, value] : named_values(*r.test, "test_")) j[name] = value;
    j["tested_step"] = r.tested_step;
  }
  if (!r.monitor.empty()) {
    j["monitor"] = r.monitor;
    j["best"] = r.best;
    j["best_step"] = r.best_step;
  }
  j["samples_per_s"] = r.samples_per_s;
  j["seconds"] = r.seconds;
  j["input_bound"] = r.waited_for_input;
  j["peak_share"] = r.peak_share;
  j["weights_sha256"] = r.weights_sha256;
  j["run_dir"] = folder.path;
  j["stopped_by"] = r.stopped_by;
  if (const auto& start = prepared.recipe.start) j["init"] = {{"from", start->from}, {"sha256", start->sha256}};
  if (r.bytes >= 0) j["bytes"] = r.bytes;
  for (const auto& [name, value] : r.system) j["system"][name] = value;
  j["world"] = world.place().world;
  j["workers"] = world.size();
  j["working_workers"] = r.working;
  if (world.size() > 1)
    for (const RankSummary& rank : r.ranks) j["ranks"].push_back(to_json(rank.times, rank.input));
  return j;
}

void add_plan(nlohmann::ordered_json& json, const Json& plan, const RunSummary& r) {
  json["plan"] = plan["plan"];
  json["predicted_idle"] = plan["idle"];
  double computing = 0, all = 0;
  for (const RankSummary& rank : r.ranks)
    computing += rank.times.compute, all += rank.times.compute + rank.times.exchange;
  if (all > 0) json["idle"] = 1 - computing / all;
  if (plan.contains("bytes_per_step")) json["predicted_bytes_per_step"] = plan["bytes_per_step"];
}

}  // namespace echelon::cli
