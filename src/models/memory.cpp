#include "models/memory.h"

#include <algorithm>
#include <vector>

#include "graph/program.h"

namespace echelon::models {
namespace {

struct ArenaBounds {
  std::size_t least = 0, most = 0;  // the operands of one operation; all values side by side
};

// Parameters and their contributions lie elsewhere, and a view takes no memory of its own.
ArenaBounds arena_bounds(const Graph& graph) {
  std::vector<bool> elsewhere(static_cast<std::size_t>(graph.values()), false);
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    elsewhere[static_cast<std::size_t>(graph.parameter_value(i).id)] = true;
    if (const Value c = graph.contributions()[i]) elsewhere[static_cast<std::size_t>(c.id)] = true;
  }
  const auto bytes = [&](Value v) {
    return elsewhere[static_cast<std::size_t>(v.id)] ? std::size_t{0} : graph.type(v).bytes();
  };
  ArenaBounds bounds;
  for (const auto& input : graph.inputs()) bounds.most += bytes(input.value);
  for (const Node& node : graph.nodes()) {
    std::size_t largest_in = 0, out = 0;
    for (const Value v : node.in) largest_in = std::max(largest_in, bytes(v));
    for (const Value v : node.out) out += bytes(v);
    // An operation may write over its input, so the two are not counted together.
    bounds.least = std::max({bounds.least, largest_in, out});
    bounds.most += out;
  }
  return bounds;
}

}  // namespace

StepMemory step_memory(const Model& model, std::int64_t samples, std::size_t available) {
  StepMemory memory;
  ParameterTable table;
  std::vector<Phase> phases = model.training(samples);
  ArenaBounds bounds;
  for (const Phase& phase : phases) {
    table.include(phase.graph);
    const ArenaBounds b = arena_bounds(phase.graph);
    bounds = {std::max(bounds.least, b.least), std::max(bounds.most, b.most)};
  }
  memory.parameters = table.floats() * sizeof(float);
  memory.arena = bounds.least;
  if (memory.least() > available) return memory;
  memory.arena = bounds.most;
  if (memory.least() < available / 64) return memory;
  memory.arena = 0;
  for (Phase& phase : phases) memory.arena = std::max(memory.arena, compile(std::move(phase.graph)).memory.arena_bytes);
  return memory;
}

}  // namespace echelon::models
