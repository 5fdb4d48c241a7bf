#pragma once
// Runs graphs in tests, without a trainer: parameters and contributions for several graphs of one model, and one
// executor for each graph.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/program.h"
#include "nn/initialise.h"

namespace echelon::test {

// The numbers of a model, shared by its graphs.
struct ModelMemory {
  explicit ModelMemory(const std::vector<const Graph*>& graphs, std::uint64_t seed = 1) {
    for (const Graph* graph : graphs) table.include(*graph);
    parameters = Buffer(table.floats() * sizeof(float));
    contributions = Buffer(table.floats() * sizeof(float));
    nn::initialise(table, seed, parameters.as<float>());
  }
  std::span<float> parameter(const std::string& name) { return part(parameters, name); }
  std::span<float> contribution(const std::string& name) { return part(contributions, name); }

  ParameterTable table;
  Buffer parameters, contributions;

 private:
  std::span<float> part(Buffer& buffer, const std::string& name) {
    const auto& entry = table.find(name);
    return buffer.as<float>().subspan(entry.offset, entry.size);
  }
};

class GraphRunner {
 public:
  GraphRunner(const Graph& graph, ModelMemory& memory, const CompileOptions& options = {})
      : plan_(compile(graph, options)),
        arena_(plan_.memory.arena_bytes),
        executor_(plan_, memory.table, memory.parameters.as<float>(), memory.contributions.as<float>(),
                  arena_.as<std::byte>()) {
    for (const auto& [name, bytes] : executor_.inputs()) inputs_.emplace(name, bytes.size());
  }

  // Stays as it is from run to run (a run may write over the executor's own). Zeros at first.
  template <typename T>
  std::span<T> input(const std::string& name) {
    return inputs_.at(name).as<T>();
  }
  std::vector<float> output(const std::string& name) {
    const auto bytes = executor_.output(name);
    const auto* data = reinterpret_cast<const float*>(bytes.data());
    return {data, data + bytes.size() / sizeof(float)};
  }
  float scalar(const std::string& name) { return output(name)[0]; }
  void run(const StepContext& step = {}) {
    for (const auto& [name, bytes] : executor_.inputs())
      std::copy_n(inputs_.at(name).data(), bytes.size(), bytes.data());
    executor_.run(step);
  }
  Executor& executor() { return executor_; }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  Buffer arena_;
  Executor executor_;
  std::map<std::string, Buffer> inputs_;
};

}  // namespace echelon::test
