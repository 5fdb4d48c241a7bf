#pragma once
// A composed system at work on a small network: what the tests of rules and exchanges run. A system is written as in
// its file: "[rule]\nname = 'grad_push'\n[sync]\nname = 'ssp'".

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/replica.h"
#include "parallel/step/evaluator.h"
#include "recipe/toml.h"
#include "tests/parallel/small_networks.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon::test {

inline const Options& axis(const Options& tree, const std::string& name) {
  static const Options none;
  const auto found = tree.items.find(name);
  return found == tree.items.end() ? none : *std::get<Option::Table>(found->second.value);
}

inline Composition composition_of(const std::string& toml, Problems& problems) {
  const Options tree = parse_toml(toml, "system");
  return read_composition({"test", axis(tree, "rule"), axis(tree, "exchange"), axis(tree, "when"), axis(tree, "sync"),
                           axis(tree, "codec"), axis(tree, "order")},
                          problems);
}

struct SystemJob {
  std::string system;
  Case network = {"mlp",
                  table({{"hidden", integers({12})}}),
                  {.kind = data::SyntheticOptions::Kind::blobs, .samples = 256, .shape = {16}, .classes = 4}};
  std::string rule = "momentum";
  Options settings = {};  // of the rule
  double lr = 0.05;
  std::function<double(std::int64_t step)> schedule = {};  // in place of lr
  int steps = 10, batch = 32, shards = 1, cores = 1;
  std::uint64_t seed = 3;
  std::vector<Straggler> stragglers = {};
  Byzantine byzantine = {};
  std::int64_t enough = std::numeric_limits<std::int64_t>::max();  // samples with which the round may end
  std::function<void(Composition&)> adapt = {};                    // before anything is made of it
  std::function<void(Replica&, Rank)> prepare = {};                // before the first step
  std::function<void(const WaitNotice&)> on_late = {};             // what it says while it waits for others
};

struct SystemResult {                 // of one rank
  std::vector<float> model, weights;  // what is evaluated; the replica's own
  double loss = 0, accuracy = 0;      // of the model on other data
  std::int64_t reached = 0;           // step
  TrafficCount sent;                  // while training
  double seconds = 0;                 // of the world's clock, while training
  std::int64_t samples = 0;           // told to this rank, of all
  std::map<std::string, double> figures;
  std::vector<CodecPiece> pieces;  // of the model
  std::vector<Range> buckets;      // in which its gradient becomes complete
  FactorFacts factors;
};

// This rank's part. `look` (may be empty) sees the replica at the end.
inline SystemResult run_system(World& world, const SystemJob& job, const std::function<void(Replica&)>& look = {}) {
  Problems problems;
  Composition composition = composition_of(job.system, problems);
  check_composition(composition, {.workers = world.size(), .shares_memory = world.shared_memory() != nullptr},
                    problems);
  problems.throw_if_any("system");
  if (job.adapt) job.adapt(composition);
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = models::make_model(job.network.name, inputs_of(*data), job.network.options);
  const auto meter = make_metered(world);
  Cores cores(job.cores);
  Team team(*meter, cores, true);
  team.on_late = job.on_late;
  Replica replica({.model = model.get(),
                   .make_optim = [&] { return optim(job.rule, job.settings); },
                   .fields = data->fields(),
                   .shards = job.shards,
                   .seed = job.seed,
                   .largest_shard = (job.batch + world.size() * job.shards - 1) / (world.size() * job.shards),
                   .stragglers = job.stragglers,
                   .byzantine = job.byzantine},
                  composition, team);
  data::Loader loader(data, {.seed = 3,
                             .batches = {{0, static_cast<std::uint64_t>(job.batch)}},
                             .shards = static_cast<std::uint64_t>(job.shards),
                             .parts = static_cast<std::uint64_t>(world.size()),
                             .part = static_cast<std::uint64_t>(world.rank()),
                             .prefetch = 0});
  if (job.prepare) job.prepare(replica, world.rank());
  SystemResult result;
  const TrafficCount before = *meter->sent();
  const double begin = world.now();
  result.reached = replica
                       .run({.from = 0,
                             .to = job.steps,
                             .enough = job.enough,
                             .loader = &loader,
                             .lr = [&](std::int64_t step) { return job.schedule ? job.schedule(step) : job.lr; },
                             .epoch = [](std::int64_t step) { return static_cast<double>(step) / 8; },
                             .asks_to_stop = [] { return false; },
                             .on_progress = [&](const StepProgress& p) { result.samples += p.result.samples; }})
                       .step;
  result.seconds = world.now() - begin;
  result.sent = {meter->sent()->messages - before.messages, meter->sent()->bytes - before.bytes};
  replica.read_model();
  result.model.assign(replica.model().begin(), replica.model().end());
  result.weights.assign(replica.trainer().parameters().begin(), replica.trainer().parameters().end());
  Evaluator evaluator(*model, replica.trainer().table(), replica.model(),
                      data::make_synthetic("test", job.network.data), 64, team);
  const Evaluation test = evaluator.run();
  result.loss = test.loss, result.accuracy = test.accuracy;
  ExchangeParts parts;
  parts.trainer = &replica.trainer();
  result.pieces = parts.pieces({0, parts.floats()});
  for (const Bucket& b : replica.trainer().buckets()) result.buckets.push_back({b.begin, b.end});
  result.factors = {.batch = static_cast<std::size_t>(job.batch), .products = replica.trainer().thin_products()};
  for (const auto& [name, value] : replica.figures()) result.figures[name] = value;
  if (look) look(replica);
  replica.close();
  return result;
}

// All ranks of a simulated cluster.
inline std::vector<SystemResult> simulate_system(int workers, const SystemJob& job, const SimCluster& cluster,
                                                 std::uint64_t seed = 7) {
  std::vector<SystemResult> all(static_cast<std::size_t>(workers));
  run_in_simulation(cluster, {.seed = seed}, [&](World& world) {
    all[static_cast<std::size_t>(world.rank())] = run_system(world, job);
  }).throw_if_failed();
  return all;
}
inline std::vector<SystemResult> simulate_system(int workers, const SystemJob& job) {
  return simulate_system(workers, job, SimCluster::uniform(workers, 1e-5, 1e9));
}

// All ranks as threads, on one memory.
inline std::vector<SystemResult> thread_system(int workers, const SystemJob& job) {
  std::vector<SystemResult> all(static_cast<std::size_t>(workers));
  run_in_threads(workers, {},
                 [&](World& world) { all[static_cast<std::size_t>(world.rank())] = run_system(world, job); });
  return all;
}

}  // namespace echelon::test
