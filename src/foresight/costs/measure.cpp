#include "foresight/costs/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "collective/group.h"
#include "graph/program.h"
#include "kernels/peak.h"
#include "parallel/step/trainer.h"
#include "world/alone.h"
#include "world/launch.h"
#include "world/wrappers/metered.h"

namespace echelon::foresight {

namespace {

double middle(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

Roofline measure_roofline(Clock& clock) {
  Roofline best{0, 0};
  Buffer from(32 << 20), to(32 << 20);  // larger than the caches that a core has to itself
  for (int i = 0; i < 5; ++i) {
    double start = clock.seconds();
    const double flops = kernels::fma_work(2'000'000);
    best.flops = std::max(best.flops, flops / (clock.seconds() - start));
    start = clock.seconds();
    std::memcpy(to.data(), from.data(), from.bytes());
    best.bytes = std::max(best.bytes, 2 * static_cast<double>(from.bytes()) / (clock.seconds() - start));
  }
  return best;
}

// What one core's watch saw.
struct Seen {
  std::map<const Node*, std::vector<double>> nodes;
  std::vector<double> updates, shards;  // of steps; of micro-batches besides their operations
  std::vector<double> samples;          // of input
};

// A few steps on so many cores; fills in `alone` or `together`.
void measure_steps(const PreparedRun& prepared, int cores_count, const MeasureOptions& options, OpCosts& into) {
  const auto world = make_world_alone(prepared.recipe.train.seed);
  Clock& clock = world->clock();
  Cores cores(cores_count);
  Team team(*world, cores);
  data::LoaderOptions loading = prepared.loader_options();
  loading.prefetch = 0;
  data::Loader loader(prepared.train, loading);
  const int shards = static_cast<int>(loader.shards());
  Trainer trainer(
      {.model = prepared.model.get(),
       .fields = loader.dataset().fields(),
       .shards = shards,
       .seed = prepared.recipe.train.seed,
       .largest_shard = static_cast<std::int64_t>(loader.largest_shard())},
      [&] { return make_optim(prepared.recipe); }, team);
  Seen seen;
  double computing = 0, update = 0;  // of core 0 in one step: its operations; sum and update
  const int own = shards_of(0, cores_count, shards).count();
  double loading_seconds = 0;
  const double began = clock.seconds();
  constexpr int warm_up = 2, least = 3, most = 60;
  for (int step = 0; step < most; ++step) {
    if (step >= warm_up + least && clock.seconds() - began > options.seconds) break;
    if (step == warm_up) {
      Watch& watch = trainer.hooks().watch;
      watch.now = [&clock] { return clock.seconds(); };
      watch.on_node = [&](int core, const Node& node, double begin, double end) {
        if (core != 0) return;
        seen.nodes[&node].push_back(end - begin);
        computing += end - begin;
      };
      watch.on_span = [&](const Span& span) {
        if (std::string_view(span.name) == "update") update = span.end - span.begin;
      };
    }
    double start = clock.seconds();
    const data::Batch& batch = loader.at(0);
    loading_seconds = clock.seconds() - start;
    const double before = trainer.times().compute;
    computing = 0;
    trainer.step(static_cast<std::uint64_t>(step), 0.0, batch);
    if (step < warm_up) continue;
    seen.updates.push_back(update);
    seen.shards.push_back(std::max(0.0, trainer.times().compute - before - computing) / std::max(1, own));
    seen.samples.push_back(loading_seconds / static_cast<double>(batch.samples()));
  }
  const bool all = cores_count > 1;
  const auto put = [&](const std::string& family, const std::string& shapes, OpCost size, double seconds) {
    const auto f = into.families().find(family);
    if (f != into.families().end())
      if (const auto it = f->second.find(shapes); it != f->second.end()) size.seconds = it->second.seconds;
    (all ? size.seconds.together : size.seconds.alone) = seconds;
    if (!all) size.seconds.together = seconds;
    // All cores together are never quicker than one alone; what says so was disturbed.
    size.seconds.together = std::max(size.seconds.together, size.seconds.alone);
    into.set(family, shapes, size);
  };
  for (const auto& profile : trainer.profile(loader.at(0), 0, [&clock] { return clock.seconds(); })) {
    std::map<std::pair<std::string, std::string>, std::pair<OpCost, std::vector<double>>> found;  // the same op, often
    for (const Node& node : profile.graph->nodes())
      if (const auto it = seen.nodes.find(&node); it != seen.nodes.end()) {
        auto& [size, times] = found[{OpCosts::family_of(node), OpCosts::shapes_of(*profile.graph, node)}];
        size = OpCosts::size_of(*profile.graph, node);
        times.insert(times.end(), it->second.begin(), it->second.end());
      }
    for (auto& [key, value] : found) put(key.first, key.second, value.first, middle(value.second));
  }
  const ModelSize size = model_size(prepared);
  const auto floats = static_cast<double>(size.floats);
  put(shard_family, shard_shapes(size.floats, size.sample_bytes, micro_batch(prepared)),
      {.seconds = {}, .flops = 0, .bytes = 4 * floats}, middle(seen.shards));
  // Seconds of a whole update on one core: with several each does a part of it.
  put(update_family(prepared.recipe), update_shapes(size.floats, shards),
      {.seconds = {}, .flops = 0, .bytes = 4 * floats}, middle(seen.updates) * cores_count);
  put(input_family, input_shapes(prepared),
      {.seconds = {}, .flops = 0, .bytes = static_cast<double>(size.sample_bytes)}, middle(seen.samples));
}

}  // namespace

std::string shard_shapes(std::size_t floats, std::size_t sample_bytes, std::int64_t samples) {
  return fmt::format("{} samples of {} bytes, {} weights", samples, sample_bytes, floats);
}

std::string input_shapes(const PreparedRun& prepared) {
  return fmt::format("sample of {} bytes, data {}", model_size(prepared).sample_bytes,
                     prepared.plain.fingerprint.substr(0, 12));
}

std::string update_family(const Recipe& recipe) {
  const auto name = recipe.optim.items.find("name");
  const std::string* text = name == recipe.optim.items.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  const auto clip = recipe.optim.items.find("clip_norm");
  return fmt::format("update {}{}", text ? *text : "sgd", clip == recipe.optim.items.end() ? "" : " clip");
}

std::string update_shapes(std::size_t floats, int shards) {
  return fmt::format("{} weights, {} shards", floats, shards);
}

ModelSize model_size(const PreparedRun& prepared) {
  ParameterTable table;
  for (const auto& phase : prepared.model->training(1)) table.include(phase.graph);
  table.include(prepared.model->evaluation(1));
  ModelSize size{.floats = table.floats()};
  for (const data::Field& f : prepared.train->fields())
    size.sample_bytes += static_cast<std::size_t>(f.shape.elements()) * echelon::size_of(f.dtype);
  return size;
}

double step_flops(const PreparedRun& prepared) {
  double flops = 0;
  for (const models::Phase& phase : prepared.model->training(1))
    for (const Node& node : phase.graph.nodes())
      flops += node.op->flops(phase.graph.types(node.in), phase.graph.types(node.out));
  return flops * static_cast<double>(prepared.recipe.train.batch);
}

std::int64_t micro_batch(const PreparedRun& prepared) {
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  return (largest + prepared.recipe.train.shards - 1) / prepared.recipe.train.shards;
}

bool is_measured(const PreparedRun& prepared, const Profile& profile) {
  const ModelSize size = model_size(prepared);
  const auto update = profile.ops.families().find(update_family(prepared.recipe));
  if (update == profile.ops.families().end() ||
      !update->second.contains(update_shapes(size.floats, static_cast<int>(prepared.recipe.train.shards))))
    return false;
  for (models::Phase& phase : prepared.model->training(micro_batch(prepared))) {
    const Graph graph = optimise(std::move(phase.graph));
    for (const Node& node : graph.nodes())
      if (!node.op->is_view() && !profile.ops.knows(graph, node)) return false;
  }
  return true;
}

bool measure_recipe(const PreparedRun& prepared, Profile& profile, const MeasureOptions& options) {
  if (step_flops(prepared) > options.most_flops || is_measured(prepared, profile)) return false;
  const auto clock = make_real_clock();
  if (profile.ops.size() == 0) profile.ops.roofline = measure_roofline(*clock);
  measure_steps(prepared, 1, options, profile.ops);
  const int shards = static_cast<int>(prepared.recipe.train.shards);
  if (const int cores = std::min(profile.cores, shards); cores > 1)
    measure_steps(prepared, cores, options, profile.ops);
  return true;
}

namespace {

// Of messages that are on their way for so long that everybody sleeps meanwhile: seconds besides their bytes.
double usual_wire_seconds(int ranks, double bytes_per_second) {
  constexpr std::size_t bytes = 32 << 10;
  constexpr int rounds = 24;
  std::vector<double> times;
  run_in_threads(ranks, {}, [&](World& inner) {
    const auto world = make_metered(inner, {.bytes_per_second = bytes_per_second});
    const Rank peer = inner.rank() ^ 1;
    if (peer >= inner.size()) return;
    std::vector<std::byte> out(bytes), in(bytes);
    for (int i = 0; i < rounds; ++i) {
      const double start = inner.now();
      Work sent;
      if (inner.rank() < peer) sent = world->send(peer, 0, {}, out);
      world->receive(peer, 0, {}, in).wait(start + 10);
      if (inner.rank() > peer) sent = world->send(peer, 0, {}, out);
      sent.wait(start + 10);
      if (inner.rank() == 0) times.push_back((inner.now() - start) / 2);
    }
  });
  return std::max(0.0, middle(times) - bytes / bytes_per_second);
}

}  // namespace

bool measure_links(int ranks, Profile& profile) {
  if (ranks < 2 || (profile.links.contains(ranks) && profile.wires.contains(ranks))) return false;
  const auto measured = [ranks](const LinkLimit& limit) {
    LinkCosts costs;
    run_in_threads(ranks, {}, [&](World& world) {
      const auto metered = make_metered(world, limit);
      Group everyone = Group::everyone(limit.bytes_per_second > 0 ? *metered : world);
      const LinkCosts mine = measure_link_costs(everyone);
      if (world.rank() == 0) costs = mine;
    });
    return costs;
  };
  constexpr double gbit = 1e9 / 8;  // what a message takes besides its bytes is the same on any link
  profile.links[ranks] = measured({});
  profile.wires[ranks] = {measured({.bytes_per_second = gbit}).latency, usual_wire_seconds(ranks, gbit)};
  return true;
}

}  // namespace echelon::foresight
