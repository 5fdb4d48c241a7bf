#pragma once
// From a graph to something that runs.
//   Plan      a compiled graph: passes applied, every value placed. Immutable; cores share it.
//   Executor  a plan bound to memory: one core's arena, the model's parameters, a place for the contributions. Running
//             it allocates nothing.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/passes/memory.h"
#include "tensor/buffer.h"

namespace echelon {

// Where each parameter lies in the flat buffers that hold all parameters, or all contributions, of a model. Several
// graphs of one model (training and evaluation, a GAN's two) share one table.
class ParameterTable {
 public:
  struct Entry {
    Parameter parameter;
    std::size_t offset;  // in floats; every parameter starts on a cache line
    std::size_t size;    // in floats
  };
  void include(const Graph& graph);
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& find(const std::string& name) const;  // BadInput if absent
  std::size_t floats() const { return floats_; }     // of a flat buffer, padding included
  std::int64_t weights() const;                      // the trainable numbers, statistics and padding not counted

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> by_name_;
  std::size_t floats_ = 0;
};

struct CompileOptions {
  bool fuse = true;
  bool choose_layouts = true;
  bool reuse_memory = true;
};

struct Plan {
  Graph graph;
  MemoryPlan memory;
  double flops = 0;  // of one run
};

Plan compile(Graph graph, const CompileOptions& options = {});
// Its two halves: the passes that rewrite the graph, and the placing of its values. Between them a graph can be cut;
// `parts` as in plan_memory.
Graph optimise(Graph graph, const CompileOptions& options = {});
Plan lay_out(Graph graph, bool reuse_memory = true, std::span<const std::size_t> parts = {});

class Executor {
 public:
  // `arena` has at least plan.memory.arena_bytes, `kept` plan.memory.kept_bytes; `parameters` and `contributions` are
  // flat buffers of `table` (contributions may be empty for a plan that contributes nothing). All must outlive the
  // executor.
  Executor(const Plan& plan, const ParameterTable& table, std::span<float> parameters, std::span<float> contributions,
           std::span<std::byte> arena, std::span<std::byte> kept = {});

  std::span<std::byte> input(const std::string& name);         // fill before run()
  std::span<const std::byte> output(const std::string& name);  // read after run()
  bool has_output(const std::string& name) const { return outputs_.contains(name); }
  const std::map<std::string, std::span<std::byte>>& inputs() const { return inputs_; }

  void run(const StepContext& step);
  // For whoever wants to do something in between. False: the node has nothing to do.
  bool run_node(const StepContext& step, std::size_t node);

  // The same, telling `saw(node, begin, end)` of every node, with times from `now` (seconds).
  using Saw = std::function<void(const Node&, double begin, double end)>;
  void run_watched(const StepContext& step, const std::function<double()>& now, const Saw& saw);
  // The same, stopping at the first node that writes a number that is not finite; returns that node, or -1.
  int run_until_not_finite(const StepContext& step);

  // A carry's memory: the slot that is read at the start of a run and the one that holds the next value after it.
  struct CarrySlot {
    std::string name;
    std::span<std::byte> from;
    std::span<const std::byte> to;
  };
  const std::vector<CarrySlot>& carries() const { return carries_; }
  const Plan& plan() const { return plan_; }
  const Operands& operands(std::size_t node) const { return operands_[node]; }  // where it reads and writes

 private:
  const Plan& plan_;
  std::vector<Kernel> kernels_;     // one per node; empty for views
  std::vector<Operands> operands_;  // where each node reads and writes
  std::map<std::string, std::span<std::byte>> inputs_;
  std::map<std::string, std::span<const std::byte>> outputs_;
  std::vector<CarrySlot> carries_;
};

}  // namespace echelon
