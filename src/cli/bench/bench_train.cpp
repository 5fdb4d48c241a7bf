// `echelon bench train`: the throughput that training a network gets on this machine, as a share of what the cores can
// do at all. Data is made up and stays in memory, so this is the engine alone.

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/bench/bench.h"
#include "cli/training/world_flags.h"
#include "data/formats/synthetic.h"
#include "data/loader.h"
#include "kernels/peak.h"
#include "models/zoo.h"
#include "parallel/step/trainer.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

struct TrainBenchSettings {
  std::string model = "lenet5";
  std::int64_t batch = 0;
  WorldFlags world;
  int shards = 0;
  double seconds = 1.0;
  bool json = false, profile = false;
};

// The batch and the optimizer with which the reference networks are compared; others get momentum and 32.
std::int64_t usual_batch(const std::string& model) {
  const std::map<std::string, std::int64_t> known{
      {"mlp", 128}, {"lenet5", 64}, {"resnet18", 64}, {"gpt", 16}, {"lstm", 32}};
  const auto it = known.find(model);
  return it == known.end() ? 32 : it->second;
}

Optim usual_optim(models::Task task) {
  Options table{.items = {}, .where = "optim"};
  table.items["name"] = {std::string(task == models::Task::language ? "adamw" : "momentum")};
  table.items["lr"] = {task == models::Task::language ? 1e-4 : 0.01};
  Problems problems;
  OptionReader reader(table, problems);
  Optim optim = read_optim(reader);
  problems.throw_if_any("bench");
  return optim;
}

// Samples with several inputs: uniform numbers, and ids that are in range.
class MadeUpRows : public data::Dataset {
 public:
  MadeUpRows(const models::InputSpec& inputs, std::uint64_t samples) : Dataset(info_of(inputs, samples)) {}
  void get(std::uint64_t index, const data::SampleContext&, data::SampleRef out) const override {
    const Stream random({.seed = 1, .shard = static_cast<std::uint32_t>(index), .layer = stream_layer("bench.rows")});
    std::uint64_t drawn = 0;
    for (std::size_t f = 0; f < fields().size(); ++f) {
      const data::Field& field = fields()[f];
      for (std::int64_t i = 0; i < field.shape.elements(); ++i, ++drawn) {
        if (field.dtype == DType::f32) {
          reinterpret_cast<float*>(out[f])[i] = random.uniform(drawn);
        } else {
          const std::int64_t ids =
              field.categories.empty() ? info().classes : field.categories[static_cast<std::size_t>(i)];
          reinterpret_cast<std::int32_t*>(out[f])[i] = static_cast<std::int32_t>(
              random.below(static_cast<std::uint32_t>(std::max<std::int64_t>(ids, 1)), drawn));
        }
      }
    }
  }

 private:
  static data::DatasetInfo info_of(const models::InputSpec& spec, std::uint64_t samples) {
    data::DatasetInfo info;
    info.size = samples;
    info.inputs = spec.inputs.size();
    info.classes = spec.classes;
    for (const auto& f : spec.inputs) info.fields.push_back({f.name, f.type.dtype, f.type.shape, f.categories});
    info.fields.push_back({spec.target.name, spec.target.type.dtype, spec.target.type.shape});
    return info;
  }
};

data::DatasetPtr made_up_data(const models::InputSpec& inputs, std::int64_t samples) {
  using Kind = data::SyntheticOptions::Kind;
  if (inputs.inputs.size() > 1) return std::make_shared<MadeUpRows>(inputs, static_cast<std::uint64_t>(samples));
  const Type& x = inputs.input().type;
  data::SyntheticOptions o;
  o.kind = x.dtype == DType::i32 ? Kind::tokens : x.shape.rank() == 3 ? Kind::images : Kind::blobs;
  o.samples = static_cast<std::uint64_t>(samples);
  o.shape = x.shape;
  o.classes = std::max<std::int64_t>(inputs.classes, 2);
  return data::make_synthetic("train", o);
}

// GFLOP/s of all cores together, each doing nothing but multiply-adds: the best of a few tries.
double peak_gflops(Cores& cores, Clock& clock) {
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<double> flops(static_cast<std::size_t>(cores.count()));
    const double start = clock.seconds();
    cores.run([&](int core) { flops[static_cast<std::size_t>(core)] = kernels::fma_work(4'000'000); });
    double sum = 0;
    for (double f : flops) sum += f;
    best = std::max(best, sum / (clock.seconds() - start) / 1e9);
  }
  return best;
}

void print_profile(Trainer& trainer, const data::Batch& batch, Clock& clock, double core_peak) {
  for (const auto& profile : trainer.profile(batch, 20, [&] { return clock.seconds(); })) {
    struct Row {
      std::string what;
      double seconds, flops;
    };
    std::vector<Row> rows;
    double total = 0;
    for (std::size_t n = 0; n < profile.seconds.size(); ++n) {
      const Node& node = profile.graph->nodes()[n];
      rows.push_back({fmt::format("{:<28} {:<22} {}", node.layer,
                                  fmt::format("{}{}", node.op->name(), node.backward ? " (b)" : ""),
                                  to_string(profile.graph->type(node.out[0]))),
                      profile.seconds[n],
                      node.op->flops(profile.graph->types(node.in), profile.graph->types(node.out))});
      total += profile.seconds[n];
    }
    std::ranges::stable_sort(rows, std::greater{}, &Row::seconds);
    fmt::print("\n{}: {:.3f} ms on one shard\n{:>9} {:>6} {:>9} {:>6}  operation\n", profile.phase, total * 1e3, "us",
               "%", "GFLOP/s", "peak");
    for (const Row& r : rows) {
      if (r.seconds < total * 0.002) continue;
      const double rate = r.flops / r.seconds / 1e9;
      fmt::print("{:>9.1f} {:>5.1f}% {:>9} {:>6}  {}\n", r.seconds * 1e6, 100 * r.seconds / total,
                 r.flops > 0 ? fmt::format("{:.1f}", rate) : "",
                 r.flops > 0 ? fmt::format("{:.0f}%", 100 * rate / core_peak) : "", r.what);
    }
  }
}

void run_rank(TrainBenchSettings s, World& world) {
  if (s.shards == 0) s.shards = std::max(2, cores_each(s.world, world) * world.size());
  if (s.batch < s.shards) bad_input("--batch {} is smaller than --shards {}", s.batch, s.shards);
  const models::InputSpec inputs = models::find_model(s.model).usual_inputs();
  const auto model = models::make_model(s.model, inputs);
  Clock& clock = world.clock();
  Cores cores(cores_each(s.world, world));
  Team team(world, cores);
  const ShardRange own = shards_of(world.rank(), world.size(), s.shards);
  data::Loader loader(made_up_data(inputs, s.batch), {.batches = {{0, static_cast<std::uint64_t>(s.batch)}},
                                                      .shards = static_cast<std::uint64_t>(s.shards),
                                                      .own = data::IndexRange{static_cast<std::uint64_t>(own.first),
                                                                              static_cast<std::uint64_t>(own.count())},
                                                      .prefetch = 0});
  std::vector<data::Field> fields = loader.dataset().fields();
  if (inputs.inputs.size() == 1) {  // made-up data have names of their own
    fields[0].name = inputs.input().name;
    if (fields.size() > 1) fields[1].name = inputs.target.name;
  }
  Trainer trainer(
      {.model = model.get(),
       .fields = fields,
       .shards = s.shards,
       .seed = 1,
       .largest_shard = static_cast<std::int64_t>(loader.largest_shard())},
      [&] { return usual_optim(model->task()); }, team);

  const double peak = peak_gflops(cores, clock) * world.size();
  const data::Batch& batch = loader.at(0);
  std::uint64_t step = 0;
  for (int i = 0; i < 4; ++i) trainer.step(step++, 1e-4, batch);
  double start = clock.seconds();
  trainer.step(step++, 1e-4, batch);
  double steps = std::max(1.0, std::floor(s.seconds / (clock.seconds() - start)));
  team.broadcast(std::as_writable_bytes(std::span(&steps, 1)));  // all ranks do the same number
  std::vector<double> rates;
  for (int window = 0; window < 7; ++window) {
    start = clock.seconds();
    for (int i = 0; i < steps; ++i) trainer.step(step++, 1e-4, batch);
    rates.push_back(static_cast<double>(s.batch) * steps / (clock.seconds() - start));
  }
  if (world.rank() > 0) return;
  std::ranges::sort(rates);
  const int all_cores = cores.count() * world.size();
  const double rate = rates[3], gflops = rate * trainer.flops_per_sample() / 1e9;
  const double peak_rss = static_cast<double>(peak_resident_bytes()) / (1 << 20);
  if (s.json) {
    const nlohmann::ordered_json out{{"model", s.model},
                                     {"params", trainer.table().weights()},
                                     {"batch", s.batch},
                                     {"shards", s.shards},
                                     {"workers", world.size()},
                                     {"world", world.place().world},
                                     {"cores", all_cores},
                                     {"samples_per_s", rate},
                                     {"gflops", gflops},
                                     {"peak_gflops", peak},
                                     {"peak_share", gflops / peak},
                                     {"planned_mb", static_cast<double>(trainer.planned_bytes()) / (1 << 20)},
                                     {"peak_rss_mb", peak_rss}};
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print("{}: {} parameters, batch {} in {} shard(s) on {}\n", s.model, trainer.table().weights(), s.batch,
               s.shards, in_words(s.world, world));
    fmt::print("  {:.1f} samples/s   {:.1f} GFLOP/s = {:.0f} % of the cores' {:.1f}\n", rate, gflops,
               100 * gflops / peak, peak);
    fmt::print("  memory: {:.0f} MiB planned, {:.0f} MiB resident at most\n",
               static_cast<double>(trainer.planned_bytes()) / (1 << 20), peak_rss);
  }
  if (s.profile) print_profile(trainer, batch, clock, peak / all_cores);
}

void bench_train(TrainBenchSettings s) {
  models::find_model(s.model);  // BadInput before anything is started
  if (s.batch == 0) s.batch = usual_batch(s.model);
  run_on_world(s.world, {.seed = 1}, [&](World& world) { run_rank(s, world); });
}

}  // namespace

void add_bench_train(Verb bench) {
  const Verb verb = bench.add_subcommand("train", "Training throughput of a network, on data that is made up");
  auto s = std::make_shared<TrainBenchSettings>();
  verb.add_option("--model", s->model, "A network of `echelon models list`").show_default();
  verb.add_option("--batch", s->batch, "Samples in a step, over all cores (default: the network's usual one)");
  add_world_flags(verb, s->world);
  verb.add_option("--shards", s->shards, "Logical shards of a batch (default: as many as cores, at least two)");
  verb.add_option("--seconds", s->seconds, "Length of each of the seven windows").show_default();
  verb.add_flag("--profile", s->profile, "Also print where the time goes, operation by operation");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon bench train --model resnet18 --cores 2\n"
      "  echelon bench train --model gpt --batch 16 --profile\n"
      "  echelon bench train --model mlp --workers 2 --cores 1\n"
      "  echelon bench train --model mlp --workers 2 --link 1gbit");
  verb.action([s] { bench_train(*s); });
}

}  // namespace echelon::cli
