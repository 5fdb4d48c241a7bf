// A step of exact training in which every rank has the whole model (parallel/step/trainer.h). Where ranks share memory:
// the longest core's micro-batches, a barrier, each core's share of sum and update, a barrier. Where they send
// messages: buckets leave while the last micro-batch is under way, by the trainer's own choice of buckets, and every
// rank makes the whole update.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collective/algorithms.h"
#include "foresight/costs/collective_costs.h"
#include "foresight/costs/graph_costs.h"
#include "foresight/costs/measure.h"
#include "foresight/predict.h"
#include "graph/program.h"
#include "parallel/step/buckets.h"
#include "parallel/step/node_actions.h"
#include "run/whole_bytes.h"

namespace echelon::foresight {

namespace {

int cores_of_rank(const Platform& platform, const PredictOptions& options) {
  if (!platform.is_here()) return 1;
  if (options.cores_each > 0) return options.cores_each;
  return std::max(1, platform.cores_of(0) / platform.crowd());
}

// When each gradient is complete, if operations take what they were measured to take, times `turns`.
std::vector<ReadyPiece> timed_pieces(const Graph& graph, const ParameterTable& table, const GraphCosts& costs, int rank,
                                     double start, double turns) {
  std::vector<double> after;
  double time = start;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) after.push_back(time += turns * costs.seconds(rank, n));
  // One number a node, so that the trainer's own function says after which node a gradient is there.
  std::vector<ReadyPiece> pieces = ready_pieces(graph, table, 1.0, 0.0);
  double flops = 0;
  std::map<double, double> at;  // flops so far -> seconds
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    flops += node.op->flops(graph.types(node.in), graph.types(node.out));
    at[flops] = after[n];
  }
  for (ReadyPiece& p : pieces)
    if (const auto it = at.lower_bound(p.seconds * (1 - 1e-12)); it != at.end()) p.seconds = it->second;
  return pieces;
}

}  // namespace

Prediction predict_whole(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                         const PredictOptions& options) {
  const int ranks = platform.ranks(), shards = static_cast<int>(prepared.recipe.train.shards);
  const int each = cores_of_rank(platform, options);
  const ModelSize size = model_size(prepared);
  const std::int64_t samples = micro_batch(prepared);
  Prediction result{
      .plan = plan, .workers = ranks, .samples = static_cast<double>(prepared.batch_sequence().largest_batch())};
  const OpCosts* ops = platform.is_here() ? &platform.profile()->ops : nullptr;
  const auto cost = [&](const std::string& family, const std::string& shapes, double bytes, int busy) {
    if (!ops) return 0.0;
    return ops->of(family, shapes, {.seconds = {}, .flops = 0, .bytes = bytes})
        .seconds.with(busy, platform.cores_of(0));
  };

  // How much slower cores are because they share the machine: in turns, where there are more of them than it has.
  const int all_cores = ranks * each;
  const int cores_used = each * platform.crowd();  // of the machine with the most ranks
  const double working = std::ceil(static_cast<double>(std::min(all_cores, shards)) * platform.crowd() / ranks);
  const int busy = platform.is_here() ? std::min(static_cast<int>(working), platform.cores_of(0)) : 1;
  const double turns = platform.is_here() ? std::max(1.0, working / platform.cores_of(0)) : 1.0;
  result.busy = busy;

  std::vector<models::Phase> phases = prepared.model->training(samples);
  ParameterTable table;
  for (const models::Phase& phase : phases) table.include(phase.graph);
  table.include(prepared.model->evaluation(1));
  const auto floats = static_cast<double>(size.floats);
  const double per_shard = cost(shard_family, shard_shapes(size.floats, size.sample_bytes, samples), 4 * floats, busy);
  const double input = cost(input_family, input_shapes(prepared), static_cast<double>(size.sample_bytes), busy);
  const double whole_update =
      cost(update_family(prepared.recipe), update_shapes(size.floats, shards), 4 * floats, busy);

  const bool loader_shares = cores_used >= platform.cores_of(0);

  result.ranks.resize(static_cast<std::size_t>(ranks));
  double end = 0;
  std::map<std::string, double> parts;
  std::vector<int> everyone(static_cast<std::size_t>(ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  for (models::Phase& phase : phases) {
    const Graph graph = optimise(std::move(phase.graph));
    const GraphCosts costs(graph, platform, busy);
    result.measured = costs.measured_share();
    std::vector<double> computed(static_cast<std::size_t>(ranks));
    double latest = 0;
    for (int r = 0; r < ranks; ++r) {
      const ShardRange own = shards_of(r, ranks, shards);
      const ShardRange of_core = shards_of(0, each, own.count());  // the first core has the most
      const double a_shard = costs.all(r) + per_shard;
      computed[static_cast<std::size_t>(r)] = turns * of_core.count() * a_shard;
      if (&phase == &phases.front()) {
        const double loading = input * static_cast<double>(samples) * own.count();
        // Without a core of its own the loader takes turns with the others; with one it is late where it takes longer.
        const double unhidden =
            loader_shares ? turns * loading / each : std::max(0.0, loading - computed[static_cast<std::size_t>(r)]);
        computed[static_cast<std::size_t>(r)] += unhidden;
        result.input = std::max(result.input, unhidden);
      }
      latest = std::max(latest, computed[static_cast<std::size_t>(r)]);
      result.ranks[static_cast<std::size_t>(r)].runs = turns * of_core.count();
      if (options.operations) costs.add_operations(r, result.ranks[static_cast<std::size_t>(r)].operations);
      result.ranks[static_cast<std::size_t>(r)].compute += computed[static_cast<std::size_t>(r)];
    }
    if (options.operations) costs.add_profiled(graph, result);
    costs.add_parts(parts, shards_of(0, each, shards_of(0, ranks, shards).count()).count() * turns);
    if (platform.shares_memory() || ranks == 1) {
      const double update = turns * whole_update / std::max(1, std::min(all_cores, platform.cores_of(0)));
      const double barriers = ranks > 1 ? 2 * platform.links().barrier * turns : 0;
      for (int r = 0; r < ranks; ++r) {
        RankPrediction& rank = result.ranks[static_cast<std::size_t>(r)];
        rank.exchange += update + barriers;
        if (const double waits = latest - computed[static_cast<std::size_t>(r)]; waits > 0) rank.waits[-1] += waits;
      }
      parts["sum and update"] += update;
      end += latest + update + barriers;
      continue;
    }
    // Buckets leave during the last shard. The trainer chooses them from the whole step's time and the measured links.
    int slowest = 0;
    for (int r = 0; r < ranks; ++r)
      if (computed[static_cast<std::size_t>(r)] > computed[static_cast<std::size_t>(slowest)]) slowest = r;
    const double a_shard = turns * (costs.all(slowest) + per_shard);
    const auto chosen_by = find_algorithm("owners");
    const double speed = costs.flops() / std::max(a_shard, 1e-12);
    const auto planned = ready_pieces(graph, table, speed, std::max(0.0, latest - a_shard));
    const std::vector<Bucket> buckets = choose_buckets(planned, [&](std::size_t bytes) {
      return chosen_by.seconds(static_cast<double>(bytes), ranks, platform.links());
    });
    const auto pieces = timed_pieces(graph, table, costs, slowest, std::max(0.0, latest - a_shard), turns);
    const HalfSumCost half = owners_half(platform, everyone);
    const std::vector<double> finished =
        finish_times(buckets, pieces, [&](std::size_t bytes) { return 2 * half.seconds(static_cast<double>(bytes)); });
    const double summed = finished.empty() ? 0 : finished.back();
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const double hidden = std::max(latest, b > 0 ? finished[b - 1] : 0);
      if (finished[b] - hidden > result.late.seconds)
        result.late = {.bucket = static_cast<int>(b),
                       .buckets = static_cast<int>(buckets.size()),
                       .bytes = static_cast<double>((buckets[b].end - buckets[b].begin) * sizeof(float)),
                       .seconds = finished[b] - hidden};
    }
    const double losses = small_all_gather_seconds(platform, 8 + 16.0 * std::max(1, shards / ranks));
    const double met = std::max(latest + losses, summed);
    const double update = turns * whole_update;
    double sent = 0;
    for (const Bucket& b : buckets)
      sent += 2.0 * static_cast<double>((b.end - b.begin) * sizeof(float)) * (ranks - 1) / ranks;
    for (int r = 0; r < ranks; ++r) {
      RankPrediction& rank = result.ranks[static_cast<std::size_t>(r)];
      rank.exchange += update + (met - latest);
      rank.send_to_others(everyone, r, sent);
      if (const double waits = latest - computed[static_cast<std::size_t>(r)]; waits > 1e-12)
        rank.waits[slowest] += waits;
    }
    parts["sum over ranks that nothing hides"] += met - latest;
    parts["update"] += update;
    end += met + update;
  }
  result.seconds = end;
  if (ranks <= 64) {
    const auto bytes = whole_model_bytes(prepared, ranks, each, ranks > 1 && !platform.shares_memory());
    for (int r = 0; r < ranks; ++r)
      result.ranks[static_cast<std::size_t>(r)].bytes = bytes[static_cast<std::size_t>(r)];
  }
  finish_prediction(result, parts);
  return result;
}

}  // namespace echelon::foresight
