// `echelon bench predict`: how fast the cores run the forward pass of a network and nothing else: no files, no words.
// What `echelon predict` gets of it is up to the files.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/bench/bench.h"
#include "graph/program.h"
#include "models/zoo.h"
#include "nn/initialise.h"
#include "tensor/buffer.h"
#include "world/os/clock.h"
#include "world/os/cores.h"

namespace echelon::cli {

namespace {

struct PredictBenchSettings {
  std::string model = "lenet5";
  std::int64_t batch = 64;
  int cores = available_cores();
  double seconds = 1.0;
  bool json = false;
};

void bench_predict(const PredictBenchSettings& s) {
  const auto model = models::make_model(s.model, models::find_model(s.model).usual_inputs());
  const Plan plan = compile(model->prediction(s.batch));
  ParameterTable table;
  table.include(plan.graph);
  Buffer parameters(table.floats() * sizeof(float));
  nn::initialise(table, 1, parameters.as<float>());
  Cores cores(s.cores);
  std::vector<Buffer> arenas;
  std::vector<std::unique_ptr<Executor>> executors;
  for (int core = 0; core < s.cores; ++core) {
    arenas.emplace_back(plan.memory.arena_bytes);
    executors.push_back(std::make_unique<Executor>(plan, table, parameters.as<float>(), std::span<float>{},
                                                   std::span(arenas.back().data(), arenas.back().bytes())));
    for (const auto& [name, bytes] : executors.back()->inputs()) std::ranges::fill(bytes, std::byte{});
  }
  const auto clock = make_real_clock();
  const auto run = [&](int times) {
    const double start = clock->seconds();
    cores.run([&](int core) {
      for (int i = 0; i < times; ++i) executors[static_cast<std::size_t>(core)]->run({});
    });
    return clock->seconds() - start;
  };
  constexpr int warming = 3, windows = 7;
  run(warming);
  const int times = std::max(1, static_cast<int>(std::floor(s.seconds / std::max(1e-6, run(1)))));
  std::vector<double> rates;
  for (int window = 0; window < windows; ++window)
    rates.push_back(static_cast<double>(s.batch) * times * s.cores / run(times));
  std::ranges::sort(rates);
  const double median = rates[windows / 2];
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"model", s.model},
                                              {"batch", s.batch},
                                              {"cores", s.cores},
                                              {"samples_per_s", median},
                                              {"samples", s.batch * s.cores * (warming + 1 + windows * times)}}
                           .dump());
  else
    fmt::print("{}: {} samples/s forward, batches of {} on {} core{}\n", s.model, human_count(median), s.batch, s.cores,
               s.cores == 1 ? "" : "s");
}

}  // namespace

void add_bench_predict(Verb bench) {
  const Verb verb = bench.add_subcommand("predict", "Speed of a network's forward pass, on data that is made up");
  auto s = std::make_shared<PredictBenchSettings>();
  verb.add_option("--model", s->model, "A network of `echelon models list`").show_default();
  verb.add_option("--batch", s->batch, "Samples that a core takes at a time").show_default().range(1, 1 << 20);
  verb.add_option("--cores", s->cores, "Cores to use").show_default().range(1, 1024);
  verb.add_option("--seconds", s->seconds, "Length of each of the seven windows").show_default().range(0.001, 3600.0);
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer("Examples:\n  echelon bench predict --model resnet18\n  echelon bench predict --model lenet5 --cores 1");
  verb.action([s] { bench_predict(*s); });
}

}  // namespace echelon::cli
