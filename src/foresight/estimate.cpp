#include "foresight/estimate.h"

#include <algorithm>
#include <cmath>

#include "collective/shard_tree.h"
#include "foresight/costs/collective_costs.h"
#include "foresight/costs/graph_costs.h"

namespace echelon::foresight {

namespace {

// The least load that the heaviest of `stages` neighbouring groups of layers can have, by bisection: where each ends.
// The engine's own cut (plan/stages.h) has the same heaviest stage within two per cent, and takes longer to find.
std::vector<std::size_t> stage_ends(const std::vector<LayerWork>& layers, int stages) {
  const std::size_t n = layers.size();
  double low = 0, high = 0;
  for (const LayerWork& l : layers) low = std::max(low, l.work), high += l.work;
  const auto cut = [&](double most) {
    std::vector<std::size_t> ends;
    double load = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto left = static_cast<std::size_t>(stages) - ends.size() - 1;  // stages after this one
      if (i > (ends.empty() ? 0 : ends.back()) && (load + layers[i].work > most || n - i == left))
        ends.push_back(i), load = 0;
      load += layers[i].work;
      if (ends.size() + 1 > static_cast<std::size_t>(stages)) break;
    }
    ends.push_back(n);
    return ends;
  };
  for (int i = 0; i < 60 && high - low > 1e-9 * high; ++i) {
    const double middle = (low + high) / 2;
    (cut(middle).size() <= static_cast<std::size_t>(stages) ? high : low) = middle;
  }
  return cut(high);
}

// Ranks that have the same stage: one of each replica.
std::vector<int> replicas_of(const PlanSpec& plan, int place) {
  std::vector<int> ranks;
  for (int d = 0; d < plan.data; ++d) ranks.push_back(plan.rank_at(d, place));
  return ranks;
}

// Micro-batches that are alive at once on a position of the pipeline.
double alive(const PlanSpec& plan, int position, double micro_batches) {
  if (plan.pipeline == 1) return 1;
  if (plan.schedule == "gpipe") return micro_batches;
  if (plan.schedule == "interleaved")
    return std::min(micro_batches * plan.chunks,
                    2.0 * (plan.pipeline - position - 1) + (plan.chunks - 1.0) * plan.pipeline + 1);
  if (plan.schedule == "zero_bubble") return std::min(micro_batches, plan.chunks * static_cast<double>(plan.pipeline));
  return std::min(micro_batches, static_cast<double>(plan.pipeline - position));
}

}  // namespace

Prediction estimate(const LayerTable& table, const PlanSpec& plan, const Platform& platform) {
  Prediction p{.plan = plan, .workers = platform.ranks(), .samples = table.batch};
  const int t = plan.tensor, stages = plan.stages();
  const double m = std::ceil(static_cast<double>(table.shards) / plan.data);  // micro-batches of a replica
  const auto place_of = [&](int position) { return position * t; };           // of its first part
  const double recomputes = plan.recompute == "none" ? 0 : 1;
  const std::vector<std::size_t> cut = stage_ends(table.work, stages);
  const int positions = plan.pipeline;
  p.ranks.resize(static_cast<std::size_t>(positions));

  std::vector<int> tensor_ranks;
  for (int part = 0; part < t; ++part) tensor_ranks.push_back(plan.rank_at(0, part));
  const HalfSumCost joins = owners_half(platform, tensor_ranks);
  double slowest = 0, sends = 0;
  std::vector<double> floats(static_cast<std::size_t>(positions)), work(floats), kept(floats);
  double entering = 0;  // bytes into a stage
  std::size_t at = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const std::size_t end = cut[static_cast<std::size_t>(stage)];
    const auto where = static_cast<std::size_t>(stage % positions);
    double seconds = 0, keeps = 0;
    for (; at < end; ++at) {
      const LayerCost& l = table.layers[at];
      seconds += l.seconds(t) + recomputes * l.forward.over(t);
      if (t > 1 && l.joins > 0) seconds += 2 * joins.seconds(l.joins);
      floats[where] += l.floats_over(t);
      keeps += l.kept / (l.forward.split > 0 ? t : 1);
    }
    kept[where] += recomputes > 0 ? entering : keeps;
    work[where] += seconds;
    if (end < table.layers.size()) {
      entering = table.layers[end - 1].sends;
      p.ranks[where].sent += 2 * entering * m;
      sends = std::max(sends, entering);
    }
  }
  for (const double w : work) slowest = std::max(slowest, w);

  // The pipeline: full for m micro-batches of the slowest rank, idle for what the schedule's formula says.
  double busy = m * slowest, span = busy;
  if (plan.pipeline > 1) {
    const ScheduleKind* kind = find_schedule(plan.schedule);
    const double idle = kind->bubble({plan.pipeline, static_cast<int>(m), plan.chunks});
    span = busy / std::max(1e-3, 1 - idle);
    const int next = plan.rank_at(0, place_of(1));
    const double message = platform.latency(0, next) + sends / platform.bytes_per_second(0, next);
    span += 2 * (plan.pipeline - 1) * message;                          // filling and emptying
    if (message > slowest / 2) span = std::max(span, m * 2 * message);  // the link is what is full
    if (plan.has_own_result()) span = std::max(busy, 2 * m * message);
  }

  // The sum over replicas. A whole model's gradients leave during the last micro-batch; a stage's after it.
  double tail = 0;
  for (int position = 0; position < positions; ++position) {
    RankPrediction& rank = p.ranks[static_cast<std::size_t>(position)];
    const std::vector<int> group = replicas_of(plan, place_of(position));
    const double bytes = 4 * floats[static_cast<std::size_t>(position)];
    const HalfSumCost half = owners_half(platform, group);
    const double n = plan.data;
    double own = floats[static_cast<std::size_t>(position)], sum = 0;
    if (plan.data > 1) {
      sum = 2 * half.seconds(bytes);
      rank.sent += 2 * bytes * (n - 1) / n;
      if (plan.zero > 0) own /= n;
      if (plan.zero >= 2) sum = half.seconds(bytes) * (1 + m), rank.sent += bytes * (n - 1) / n * (m - 1);
      if (plan.zero >= 3) sum += half.seconds(bytes) * (2 * m - 1), rank.sent += bytes * (n - 1) / n * (2 * m - 1);
    }
    if (!plan.splits_model() && plan.data > 1 && !platform.shares_memory()) {
      const double backward = slowest * 2 / 3;  // of the last micro-batch: what hides the first buckets
      sum = std::max(sum - backward, std::min(sum, 2 * half.latency + sum * 0.05));
    }
    const double shares = !plan.splits_model() && platform.shares_memory() ? n : 1;  // cores that split the update
    double update = own * table.update / shares;
    if (platform.is_here()) update *= platform.turns();
    if (!plan.splits_model() && platform.shares_memory() && plan.data > 1) sum = 2 * platform.links().barrier;
    tail = std::max(tail, sum + update);
    rank.compute = m * work[static_cast<std::size_t>(position)];
    rank.exchange = sum + update;
    const auto whole = static_cast<std::size_t>(floats[static_cast<std::size_t>(position)]);
    rank.bytes.parameters = 4 * (plan.zero >= 3 ? whole / static_cast<std::size_t>(plan.data) : whole);
    const int own_shards = static_cast<int>(m);
    rank.bytes.contributions =
        plan.zero >= 2 ? 4 * static_cast<std::size_t>(own) * 2
                       : ShardReducer::memory_bytes(table.shards, 0, std::min(own_shards, table.shards), whole);
    rank.bytes.state = table.slots * static_cast<std::size_t>(own) * 4;
    rank.bytes.activations = static_cast<std::size_t>(kept[static_cast<std::size_t>(position)] *
                                                      (plan.splits_model() ? alive(plan, position, m) : 1.0));
    if (plan.zero >= 3) rank.bytes.activations += 4 * whole / 4;
    if (plan.splits_model() && plan.evaluate == "all") rank.bytes.model = static_cast<std::size_t>(4 * table.floats);
    if (const double idle = span - rank.compute; idle > 0) rank.waits[-1] += idle;
  }
  tail += small_all_gather_seconds(platform, 16);
  // Ranks that take turns on the cores are idle less: all their work has to be done anyway.
  if (platform.is_here() && platform.turns() > 1) {
    double all = 0;
    for (const double w : work) all += m * w * t * plan.data;
    span = std::max(span, all / (platform.cores_of(0) * platform.machines()));
  }
  p.seconds = span + tail;
  finish_prediction(p, {{"compute", busy}, {"idle", span - busy}, {"sum and update", tail}});
  return p;
}

}  // namespace echelon::foresight
