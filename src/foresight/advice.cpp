#include "foresight/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace echelon::foresight {

namespace {

constexpr const char* faster_input = "Data that was converted once, smaller pictures or fewer transforms load faster";

double number_of(const Json& object, const char* key, double otherwise = 0) {
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_number()) return otherwise;
  return object.at(key).get<double>();
}

// Who keeps whom waiting: the rank for which the others wait longest.
struct Late {
  int rank = -1;
  double share = 0;  // of the others' time
};
Late latest_rank(const Json& ranks, double seconds) {
  std::map<int, double> waited;
  if (!ranks.is_array() || seconds <= 0) return {};
  for (const Json& r : ranks)
    if (r.is_object() && r.contains("waiting_for_s") && r.at("waiting_for_s").is_object())
      for (const auto& [rank, s] : r.at("waiting_for_s").items())
        if (s.is_number() && !rank.empty() && rank.find_first_not_of("0123456789") == std::string::npos &&
            rank.size() < 8)
          waited[std::stoi(rank)] += s.get<double>();
  Late late;
  const double others = std::max<double>(1, static_cast<double>(ranks.size()) - 1);
  for (const auto& [rank, s] : waited)
    if (const double share = s / others / seconds; share > late.share) late = {rank, share};
  return late;
}

// "bucket 3 of 5 waits for rank 2 ..."; empty if no bucket held a rank up for long.
std::string longest_bucket_wait(const Json& ranks, double seconds) {
  std::string text;
  double longest = 0.05;
  for (std::size_t r = 0; ranks.is_array() && seconds > 0 && r < ranks.size(); ++r) {
    if (!ranks[r].is_object() || !ranks[r].contains("bucket_wait")) continue;
    const Json& wait = ranks[r].at("bucket_wait");
    const double share = number_of(wait, "seconds") / seconds, rank = number_of(wait, "for_rank");
    if (share <= longest) continue;
    longest = share;
    const bool computes_longer =
        rank >= 0 && rank < static_cast<double>(ranks.size()) &&
        number_of(ranks[static_cast<std::size_t>(rank)], "compute_s") > 1.05 * number_of(ranks[r], "compute_s");
    text = fmt::format("bucket {:.0f} of {:.0f} waits for rank {:.0f}: rank {} did so for {:.0f} % of the time, {}",
                       number_of(wait, "bucket"), number_of(wait, "of"), rank, r, 100 * share,
                       computes_longer ? "for that rank computes longer" : "for nothing hides the message");
  }
  return text;
}

}  // namespace

std::vector<Advice> advice_before(const Ranking& ranking, const AdviceFacts& f) {
  std::vector<Advice> all;
  if (ranking.plans.empty()) {
    all.push_back(
        {fmt::format("no plan fits: a rank may have {}, and all {} legal plans need more. More workers, more "
                     "micro-batches or a smaller model would help",
                     human_bytes(static_cast<double>(f.memory)), ranking.legal),
         fmt::format("echelon plan {} --workers {} --set train.shards={}", f.recipe, 2 * f.workers, 2 * f.shards)});
    return all;
  }
  const Prediction& best = ranking.plans.front().prediction;
  if (best.input > 0.1 * best.seconds)
    all.push_back({fmt::format("input-bound: {:.0f} % of a step goes into making samples. {}",
                               100 * best.input / best.seconds, faster_input),
                   "echelon data convert DATA --format npy --to FOLDER"});
  if (f.here && f.workers > f.cores)
    all.push_back({fmt::format("{} workers share {} core{}: they take turns, so more of them bring nothing here",
                               f.workers, f.cores, f.cores == 1 ? "" : "s"),
                   fmt::format("echelon plan {} --workers {}", f.recipe, f.cores)});
  if (f.shards < f.workers && !best.plan.splits_model())
    all.push_back({fmt::format("a batch of {} is {} micro-batches, so {} of {} workers have no work", f.batch, f.shards,
                               f.workers - f.shards, f.workers),
                   fmt::format("echelon plan {} --workers {} --set train.shards={}", f.recipe, f.workers, f.workers)});
  if (const double each = static_cast<double>(f.batch) / f.workers; each < 8 && f.workers > 1)
    all.push_back(
        {fmt::format("with {} workers the batch of {} leaves {:.3g} samples each: operations get short, and the "
                     "sum over ranks stays what it is",
                     f.workers, f.batch, each),
         fmt::format("echelon plan {} --workers {} --set train.batch={} --set train.shards={}", f.recipe, f.workers,
                     16 * f.workers, std::max<std::int64_t>(f.shards, f.workers))});
  if (best.plan.pipeline > 1 && best.waiting() > 0.1 * best.seconds)
    all.push_back(
        {fmt::format("ranks of the pipeline are idle for {:.0f} % of the time: {} micro-batches for {} stages",
                     100 * best.waiting() / best.seconds, f.shards / best.plan.data, best.plan.stages()),
         fmt::format("echelon plan {} --workers {} --set train.shards={}", f.recipe, f.workers, 4 * f.shards)});
  if (const LateBucket& b = best.late; b.seconds > 0.05 * best.seconds)
    all.push_back({fmt::format("bucket {} of {} ({} of gradients) is not summed when computing ends: the step waits {} "
                               "for it, {:.0f} % of its time",
                               b.bucket + 1, b.buckets, human_bytes(b.bytes), human_duration(b.seconds),
                               100 * b.seconds / best.seconds),
                   fmt::format("echelon plan {} --workers {} --allow compressed", f.recipe, f.workers)});
  if (best.exchange > 0.3 * best.seconds && f.workers > 1)
    all.push_back({fmt::format("link-bound: {:.0f} % of a step is sums over ranks and updates that nothing hides",
                               100 * best.exchange / best.seconds),
                   fmt::format("echelon plan {} --workers {} --allow local,compressed", f.recipe, f.workers)});
  if (const RankedPlan& r = ranking.plans.front(); f.workers > 1 && r.efficiency < 0.5 && all.empty())
    all.push_back(
        {fmt::format("each of {} workers does {:.0f} % of what one alone would", f.workers, 100 * r.efficiency),
         fmt::format("echelon plan {} --sweep workers=1..{}", f.recipe, f.workers)});
  return all;
}

std::vector<Advice> advice_after(const Json& summary, const AdviceFacts& f) {
  std::vector<Advice> all;
  const double input = number_of(summary, "input_bound"), seconds = number_of(summary, "seconds");
  if (input > 0.1)
    all.push_back({fmt::format("input-bound: {:.0f} % of the training time was spent waiting for samples. {}",
                               100 * input, faster_input),
                   "echelon data convert DATA --format npy --to FOLDER"});
  const Json ranks = summary.is_object() && summary.contains("ranks") ? summary.at("ranks") : Json();
  double compute = 0, exchange = 0;
  if (ranks.is_array())
    for (const Json& r : ranks) compute += number_of(r, "compute_s"), exchange += number_of(r, "exchange_s");
  const double count = ranks.is_array() ? std::max<double>(1, static_cast<double>(ranks.size())) : 1;
  const double training = (compute + exchange) / count;
  if (const Late late = latest_rank(ranks, std::max(seconds, 1e-9)); late.share > 0.1)
    all.push_back(
        {fmt::format("the others wait for rank {} for {:.0f} % of the time: it has more to do, a slower core or a "
                     "slower link",
                     late.rank, 100 * late.share),
         fmt::format("echelon plan {} --workers {}", f.recipe, f.workers)});
  if (const std::string text = longest_bucket_wait(ranks, seconds); !text.empty())
    all.push_back({text, fmt::format("echelon plan {} --workers {}", f.recipe, f.workers)});
  if (f.workers > 1 && training > 0 && exchange / count > 0.3 * training)
    all.push_back({fmt::format("link-bound: {:.0f} % of the ranks' time went into sums and updates, not into computing",
                               100 * exchange / (compute + exchange)),
                   fmt::format("echelon plan {} --workers {} --allow local,compressed", f.recipe, f.workers)});
  if (const double working = number_of(summary, "working_workers", f.workers); working < f.workers)
    all.push_back({fmt::format("{:.0f} of {} workers had no samples: a batch of {} is {} micro-batches",
                               f.workers - working, f.workers, f.batch, f.shards),
                   fmt::format("echelon train {} --workers {} --set train.shards={}", f.recipe, f.workers, f.workers)});
  if (const double each = static_cast<double>(f.batch) / f.workers; f.workers > 1 && each < 8)
    all.push_back({fmt::format("with {} workers the batch of {} leaves {:.3g} samples each", f.workers, f.batch, each),
                   fmt::format("echelon plan {} --sweep workers=1..{}", f.recipe, f.workers)});
  if (const double idle = number_of(summary, "idle"); idle > 0.2)
    all.push_back(
        {fmt::format("ranks of the split model were idle for {:.0f} % of the time", 100 * idle),
         fmt::format("echelon plan {} --workers {} --set train.shards={}", f.recipe, f.workers, 4 * f.shards)});
  if (all.empty() && f.workers == 1 && f.cores > 1)
    all.push_back({"compute-bound on one worker: nothing waited",
                   fmt::format("echelon plan {} --sweep workers=1..16", f.recipe)});
  else if (all.empty())
    all.push_back({"nothing stands out: ranks compute most of the time, and nobody waits for long", ""});
  return all;
}

}  // namespace echelon::foresight
