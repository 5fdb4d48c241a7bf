#include "models/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "graph/program.h"

namespace echelon::models {
namespace {

double flops_of(const Graph& graph, const Node& node) {
  const auto in = graph.types(node.in), out = graph.types(node.out);
  return node.op->flops(in, out);
}

std::string op_text(const Node& node) {
  std::string text(node.op->name());
  if (!node.op->detail().empty()) text += " " + node.op->detail();
  return text;
}

// Which values other layers than their own read on the way forward.
std::vector<bool> read_elsewhere(const Graph& graph) {
  std::vector<bool> read(static_cast<std::size_t>(graph.values()), false);
  for (const Node& node : graph.nodes())
    for (const Value v : node.in) {
      const ValueInfo& info = graph.info(v);
      if (node.backward || info.source != ValueInfo::Source::node) continue;
      if (graph.nodes()[static_cast<std::size_t>(info.producer)].layer != node.layer)
        read[static_cast<std::size_t>(v.id)] = true;
    }
  return read;
}

// The forward nodes, grouped by layer in the order in which the layers first appear.
std::vector<LayerRow> rows_of(const Graph& graph, std::int64_t batch, bool batched) {
  std::vector<LayerRow> rows;
  std::map<std::string, std::size_t> index;
  std::vector<bool> counted(graph.parameters().size(), false);
  const std::vector<bool> elsewhere = read_elsewhere(graph);
  std::vector<bool> settled;  // by row: its output is what others read of it; else that of its last node
  const auto count_weights = [&](const Node& node, LayerRow& row) {
    for (Value v : node.in) {
      const ValueInfo& info = graph.info(v);
      const auto p = static_cast<std::size_t>(info.producer);
      if (info.source != ValueInfo::Source::parameter || counted[p]) continue;
      counted[p] = true;
      if (graph.parameters()[p].kind == Parameter::Kind::weight) row.weights += graph.parameters()[p].shape.elements();
    }
  };
  for (const Node& node : graph.nodes()) {
    if (node.backward) continue;
    const auto [place, fresh] = index.emplace(node.layer, rows.size());
    if (fresh) rows.push_back({.layer = node.layer, .ops = {}, .output = {}, .from = {}}), settled.push_back(false);
    LayerRow& row = rows[place->second];
    row.slices = std::max(row.slices, node.slice + 1);
    row.flops += flops_of(graph, node) / static_cast<double>(batch);
    count_weights(node, row);
    for (const Value v : node.in) {
      const ValueInfo& info = graph.info(v);
      if (info.source != ValueInfo::Source::node) continue;
      const std::size_t from = index.at(graph.nodes()[static_cast<std::size_t>(info.producer)].layer);
      if (from != place->second && std::ranges::find(row.from, from) == row.from.end()) row.from.push_back(from);
    }
    std::ranges::sort(row.from);
    if (node.slice > 0) continue;  // as slice 0
    if (!node.op->is_view() || fresh) row.ops += (row.ops.empty() ? "" : ", ") + op_text(node);
    const auto it = std::ranges::find_if(node.out, [&](Value v) { return elsewhere[static_cast<std::size_t>(v.id)]; });
    const bool read = it != node.out.end();
    if (settled[place->second] && !read) continue;
    settled[place->second] = read;
    const Shape& shape = graph.type(read ? *it : node.out[0]).shape;
    row.output = !batched && shape.rank() > 0 && shape[0] == batch ? Shape(shape.dims().subspan(1)) : shape;
  }
  return rows;
}

}  // namespace

Description describe(const Model& model, std::int64_t batch, bool batched) {
  Description d;
  d.batched = batched;
  d.model = model.name();
  d.task = name_of(model.task());
  const InputSpec& inputs = model.inputs();
  for (const auto& field : inputs.inputs)
    d.input += fmt::format("{}{} {}", d.input.empty() ? "" : ", ", field.name, to_string(field.type));
  d.batch = batch;
  ParameterTable table;
  std::size_t largest = 0;
  for (Phase& phase : model.training(batch)) {
    table.include(phase.graph);
    if (d.layers.empty()) d.layers = rows_of(phase.graph, batch, batched);
    for (const Node& node : phase.graph.nodes()) {
      const double flops = flops_of(phase.graph, node) / static_cast<double>(batch);
      d.training_flops += flops;
      if (!node.backward) d.forward_flops += flops;
    }
    const std::size_t without_reuse = compile(phase.graph, {.reuse_memory = false}).memory.arena_bytes;
    const std::size_t arena = compile(std::move(phase.graph)).memory.arena_bytes;
    d.phases.push_back({phase.name, arena, without_reuse});
    largest = std::max(largest, arena);
  }
  for (const auto& entry : table.entries())
    if (entry.parameter.kind == Parameter::Kind::statistic) d.statistics += static_cast<std::int64_t>(entry.size);
  d.weights = table.weights();
  d.parameter_bytes = d.contribution_bytes = table.floats() * sizeof(float);
  d.step_bytes = largest + d.parameter_bytes + d.contribution_bytes;
  return d;
}

std::string to_text(const Description& d) {
  std::string text = fmt::format("{} ({}), sample: {}\n\n", d.model, d.task, d.input);
  std::size_t names = 5, ops = 10;
  auto operations = [](const LayerRow& row) {
    return row.slices == 1 ? row.ops : fmt::format("{} slices: {}", row.slices, row.ops);
  };
  for (const LayerRow& row : d.layers) {
    names = std::max(names, row.layer.size());
    ops = std::min<std::size_t>(44, std::max(ops, operations(row).size()));
  }
  const int width = static_cast<int>(ops);
  text += fmt::format("{:<{}}  {:<{}}  {:>18}  {:>12}  {:>9}\n", "layer", names, "operations", ops, "output", "weights",
                      "FLOPs");
  for (const LayerRow& row : d.layers)
    text += fmt::format("{:<{}}  {}  {:>18}  {:>12}  {:>9}\n", row.layer, names, fit(operations(row), width),
                        to_string(row.output), row.weights, human_count(row.flops));
  text += fmt::format("\nweights            {}\n", d.weights);
  if (d.statistics > 0) text += fmt::format("statistics         {}\n", d.statistics);
  text += fmt::format("FLOPs per sample   {} forward, {} forward and backward\n", human_count(d.forward_flops),
                      human_count(d.training_flops));
  text += fmt::format("memory of a training step of {} samples in one shard\n", d.batch);
  for (const PhaseMemory& p : d.phases)
    text += fmt::format("  {:<16} {} bytes ({}; {} without reuse)\n", p.phase + " arena", p.arena,
                        human_bytes(static_cast<double>(p.arena)), human_bytes(static_cast<double>(p.without_reuse)));
  text += fmt::format("  {:<16} {} bytes\n  {:<16} {} bytes\n  {:<16} {} bytes ({})\n", "parameters", d.parameter_bytes,
                      "contributions", d.contribution_bytes, "together", d.step_bytes,
                      human_bytes(static_cast<double>(d.step_bytes)));
  return text;
}

std::string to_json(const Description& d) {
  Json layers = Json::array(), phases = Json::array();
  for (const LayerRow& row : d.layers)
    layers.push_back({{"layer", row.layer},
                      {"operations", row.ops},
                      {"output", std::vector<std::int64_t>(row.output.dims().begin(), row.output.dims().end())},
                      {"weights", row.weights},
                      {"flops", row.flops},
                      {"slices", row.slices},
                      {"from", row.from}});
  for (const PhaseMemory& p : d.phases)
    phases.push_back({{"phase", p.phase}, {"arena_bytes", p.arena}, {"without_reuse_bytes", p.without_reuse}});
  const Json all{{"model", d.model},
                 {"task", d.task},
                 {"input", d.input},
                 {"layers", layers},
                 {"weights", d.weights},
                 {"statistics", d.statistics},
                 {"forward_flops_per_sample", d.forward_flops},
                 {"training_flops_per_sample", d.training_flops},
                 {"batch", d.batch},
                 {"phases", phases},
                 {"parameter_bytes", d.parameter_bytes},
                 {"contribution_bytes", d.contribution_bytes},
                 {"step_bytes", d.step_bytes}};
  return all.dump();
}

}  // namespace echelon::models
