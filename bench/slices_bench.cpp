// What slices cost one core: a training step of a GPT, whole and in slices, as ratios of the whole one's time:
//     bench_slices [WIDTH]
// All versions run in turn in one process; the best processor time of each counts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

#include "bench/peak.h"
#include "graph/program.h"
#include "models/zoo.h"
#include "nn/initialise.h"

namespace echelon {
namespace {

struct Version {
  explicit Version(const Graph& graph) : plan(compile(graph)), arena(plan.memory.arena_bytes) {
    table.include(plan.graph);
    parameters = Buffer(table.floats() * sizeof(float));
    contributions = Buffer(table.floats() * sizeof(float));
    nn::initialise(table, 1, parameters.as<float>());
    executor = std::make_unique<Executor>(plan, table, parameters.as<float>(), contributions.as<float>(),
                                          arena.as<std::byte>());
  }
  double seconds() {
    for (const auto& [name, bytes] : executor->inputs()) std::fill(bytes.begin(), bytes.end(), std::byte{0});
    const double begin = bench::core_time();
    executor->run({.seed = 1});
    return bench::core_time() - begin;
  }
  Plan plan;
  ParameterTable table;
  Buffer parameters, contributions, arena;
  std::unique_ptr<Executor> executor;
};

Graph gpt_in(int slices, std::int64_t width) {
  const models::InputSpec text{.inputs = {{"tokens", i32({128})}}, .target = {"targets", i32({128})}, .classes = 1024};
  Options options;
  auto set = [&](const char* key, std::int64_t value) { options.items[key] = {value}; };
  set("width", width), set("heads", 8), set("layers", 2), set("slices", slices);
  return std::move(models::make_model("gpt", text, options)->training(8)[0].graph);
}

}  // namespace
}  // namespace echelon

int main(int argc, char** argv) {
  using namespace echelon;
  const std::int64_t width = argc > 1 ? std::atoll(argv[1]) : 512;
  constexpr int slices[] = {1, 2, 4, 8};
  std::vector<std::unique_ptr<Version>> versions;
  for (int s : slices) versions.push_back(std::make_unique<Version>(gpt_in(s, width)));
  std::vector<double> best(versions.size(), std::numeric_limits<double>::max());
  for (int round = 0; round < 12; ++round)
    for (std::size_t v = 0; v < versions.size(); ++v) best[v] = std::min(best[v], versions[v]->seconds());
  fmt::print("gpt of width {}, 2 layers, 8 x 128 tokens, one core\n", width);
  for (std::size_t v = 0; v < versions.size(); ++v)
    fmt::print("{} slice{}: {:7.1f} ms, {:.3f} of the whole, arena {:.1f} MiB\n", slices[v], slices[v] == 1 ? " " : "s",
               best[v] * 1e3, best[v] / best[0], static_cast<double>(versions[v]->plan.memory.arena_bytes) / (1 << 20));
}
