#include "graph/program.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "graph/passes/fuse.h"
#include "graph/passes/fuse_batch_norm.h"
#include "graph/passes/layout.h"
#include "graph/passes/prune.h"
#include "kernels/gemm/gemm.h"

namespace echelon {

void ParameterTable::include(const Graph& graph) {
  constexpr std::size_t line = Buffer::alignment / sizeof(float);
  for (const Parameter& p : graph.parameters()) {
    if (const auto it = by_name_.find(p.name); it != by_name_.end()) {
      invariant(entries_[it->second].parameter.shape == p.shape, "a parameter has one shape in all graphs of a model");
      continue;
    }
    by_name_[p.name] = entries_.size();
    const auto size = static_cast<std::size_t>(p.shape.elements());
    entries_.push_back({p, floats_, size});
    floats_ += (size + line - 1) / line * line;
  }
}

const ParameterTable::Entry& ParameterTable::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) bad_input("the model has no parameter '{}'", name);
  return entries_[it->second];
}

std::int64_t ParameterTable::weights() const {
  std::int64_t sum = 0;
  for (const Entry& e : entries_)
    if (e.parameter.kind == Parameter::Kind::weight) sum += static_cast<std::int64_t>(e.size);
  return sum;
}

Graph optimise(Graph graph, const CompileOptions& options) {
  graph = prune(graph);
  if (options.fuse) graph = fuse(fuse_batch_norm(graph));
  if (options.choose_layouts) graph = choose_layouts(graph);
  return graph;
}

Plan compile(Graph graph, const CompileOptions& options) {
  return lay_out(optimise(std::move(graph), options), options.reuse_memory);
}

Plan lay_out(Graph graph, bool reuse_memory, std::span<const std::size_t> parts) {
  Plan plan{std::move(graph), {}, 0};
  plan.memory = plan_memory(plan.graph, reuse_memory, parts);
  for (const Node& node : plan.graph.nodes())
    plan.flops += node.op->flops(plan.graph.types(node.in), plan.graph.types(node.out));
  return plan;
}

Executor::Executor(const Plan& plan, const ParameterTable& table, std::span<float> parameters,
                   std::span<float> contributions, std::span<std::byte> arena, std::span<std::byte> kept)
    : plan_(plan) {
  kernels::init_math_libraries();  // a core is the unit of compute: no thread teams inside a kernel
  invariant(arena.size() >= plan.memory.arena_bytes && kept.size() >= plan.memory.kept_bytes,
            "the arena is as large as planned");
  const Graph& graph = plan.graph;
  auto locate = [&](Value v) -> std::byte* {
    const Placement& p = plan.memory.values[static_cast<std::size_t>(v.id)];
    switch (p.home) {
      case Placement::Home::arena: return arena.data() + p.offset;
      case Placement::Home::kept: return kept.data() + p.offset;
      case Placement::Home::parameter:
        return reinterpret_cast<std::byte*>(parameters.data() + table.find(graph.parameters()[p.offset].name).offset);
      case Placement::Home::contribution:
        return reinterpret_cast<std::byte*>(contributions.data() +
                                            table.find(graph.parameters()[p.offset].name).offset);
      case Placement::Home::nowhere: break;
    }
    return nullptr;
  };
  auto bind = [&](Value v) { return Operand{graph.type(v), locate(v)}; };

  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    Operands operands;
    for (Value v : node.in) operands.in.push_back(bind(v));
    for (Value v : node.out) operands.out.push_back(bind(v));
    operands.scratch = arena.data() + plan.memory.scratch[n];
    if (!node.op->is_view()) {
      kernels_.push_back(node.op->compile(operands));
    } else if (operands.in[0].data != operands.out[0].data) {  // a view that had to live elsewhere after all
      kernels_.push_back([from = operands.in[0].data, to = operands.out[0].data,
                          bytes = operands.out[0].type.bytes()](const StepContext&) { std::memcpy(to, from, bytes); });
    } else {
      kernels_.emplace_back();
    }
    operands_.push_back(std::move(operands));
  }
  for (const auto& i : graph.inputs()) inputs_[i.name] = {locate(i.value), graph.type(i.value).bytes()};
  for (const auto& [name, v] : graph.outputs()) outputs_[name] = {locate(v), graph.type(v).bytes()};
  for (const auto& c : graph.carries())
    carries_.push_back(
        {c.name, {locate(c.from), graph.type(c.from).bytes()}, {locate(c.to), graph.type(c.to).bytes()}});
}

std::span<std::byte> Executor::input(const std::string& name) {
  const auto it = inputs_.find(name);
  if (it == inputs_.end()) bad_input("the graph has no input '{}'", name);
  return it->second;
}

std::span<const std::byte> Executor::output(const std::string& name) {
  const auto it = outputs_.find(name);
  if (it == outputs_.end()) bad_input("the graph has no output '{}'", name);
  return it->second;
}

void Executor::run(const StepContext& step) {
  for (const Kernel& kernel : kernels_)
    if (kernel) kernel(step);
}

bool Executor::run_node(const StepContext& step, std::size_t node) {
  if (!kernels_[node]) return false;
  kernels_[node](step);
  return true;
}

void Executor::run_watched(const StepContext& step, const std::function<double()>& now, const Saw& saw) {
  double before = now();
  for (std::size_t n = 0; n < kernels_.size(); ++n) {
    if (!run_node(step, n)) continue;
    const double end = now();
    saw(plan_.graph.nodes()[n], before, end);
    before = end;
  }
}

int Executor::run_until_not_finite(const StepContext& step) {
  for (std::size_t n = 0; n < kernels_.size(); ++n) {
    if (!kernels_[n]) continue;
    kernels_[n](step);
    for (const Operand& out : operands_[n].out) {
      if (out.type.dtype != DType::f32 || out.type.layout == Layout::batch8)
        continue;  // padding lanes may hold anything
      for (float x : std::span(out.f32(), out.stored()))
        if (!std::isfinite(x)) return static_cast<int>(n);
    }
  }
  return -1;
}

}  // namespace echelon
