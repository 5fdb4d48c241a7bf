#include "plan/place.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "plan/joins.h"

namespace echelon {

namespace {

bool is_computed(const Graph& graph, Value v) { return graph.info(v).source == ValueInfo::Source::node; }

const Node& producer_of(const Graph& graph, Value v) {
  return graph.nodes()[static_cast<std::size_t>(graph.info(v).producer)];
}

}  // namespace

std::vector<int> stages_of_nodes(const Graph& graph, const StagePartition& partition) {
  std::vector<int> stage_of(graph.nodes().size(), -1);
  const int last = partition.stages() - 1;
  const auto is_result = [&](Value v) {
    return std::ranges::any_of(
        graph.outputs(), [&](const auto& o) { return o.second == v && (o.first == "loss" || o.first == "correct"); });
  };
  for (std::size_t n = 0; n < stage_of.size(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto layer = partition.stage_of.find(node.layer);
    const bool known = layer != partition.stage_of.end();
    int stage = known ? layer->second : node.backward ? last : 0;
    for (Value v : node.in) {
      if (!is_computed(graph, v)) continue;
      const int from = stage_of[static_cast<std::size_t>(graph.info(v).producer)];
      if (!node.backward)
        stage = std::max(stage, from);
      else if (producer_of(graph, v).backward)
        stage = std::min(stage, from);
    }
    // Whoever wants to know the loss asks one stage.
    if (!node.backward && std::ranges::any_of(node.out, is_result)) stage = last;
    stage_of[n] = stage;
  }
  return stage_of;
}

int slices_of(const Graph& graph) {
  int slices = 1;
  for (const Node& node : graph.nodes()) slices = std::max(slices, node.slice + 1);
  return slices;
}

namespace {

PartRange parts_for(const Node& node, int slices, int parts, const PartCounts& counts) {
  if (node.slice < 0 || parts == 1) return {0, parts};
  const auto fewer = counts.ways.find(node.layer);
  const int ways = fewer == counts.ways.end() ? parts : std::min(fewer->second, parts);
  invariant(slices % ways == 0 && parts % ways == 0, "every part of a layer has equally many slices");
  const int way = node.slice / (slices / ways), each = parts / ways;
  return {way * each, (way + 1) * each};
}

void find_segments(const Graph& graph, PlacedGraph& placed) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    int segment = 0;
    for (Value v : node.in) {
      if (!v || !is_computed(graph, v)) continue;
      const auto from = static_cast<std::size_t>(graph.info(v).producer);
      if (placed.stage_of[from] != placed.stage_of[n] || graph.nodes()[from].backward != node.backward) continue;
      const PartRange &has = placed.parts_of[from], &reads = placed.parts_of[n];
      const bool exchanged = reads.first < has.first || reads.last > has.last;
      segment = std::max(segment, placed.segment_of[from] + (exchanged ? 1 : 0));
    }
    placed.segment_of.push_back(segment);
  }
}

}  // namespace

StageSegments segments_of_stages(const Graph& graph, const PlacedGraph& placed, int stages) {
  StageSegments segments(static_cast<std::size_t>(stages), {1, 1});
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    int& most = segments[static_cast<std::size_t>(placed.stage_of[n])][graph.nodes()[n].backward ? 1 : 0];
    most = std::max(most, placed.segment_of[n] + 1);
  }
  return segments;
}

PlacedGraph place_nodes(const Graph& graph, const StagePartition& partition, const PartCounts& counts) {
  PlacedGraph placed;
  placed.parts = counts.parts;
  placed.stage_of = stages_of_nodes(graph, partition);
  pull_joins(graph, counts, placed.stage_of);
  const int slices = slices_of(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    placed.parts_of.push_back(parts_for(graph.nodes()[n], slices, counts.of(placed.stage_of[n]), counts));

  find_segments(graph, placed);

  std::set<std::tuple<int, int, int>> sent;  // value, to which stage and part
  std::vector<std::set<std::pair<int, int>>> readers(graph.parameters().size());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (int part = placed.parts_of[n].first; part < placed.parts_of[n].last; ++part) {
      const int to = placed.stage_of[n];
      for (Value v : graph.nodes()[n].in) {
        const ValueInfo& info = graph.info(v);
        const auto producer = static_cast<std::size_t>(info.producer);
        if (info.source == ValueInfo::Source::parameter) readers[producer].insert({to, part});
        if (info.source != ValueInfo::Source::node || placed.runs(producer, to, part)) continue;
        const int from = placed.stage_of[producer];
        const int from_part = placed.parts_of[producer].nearest(part);
        if (!sent.insert({v.id, to, part}).second) continue;
        const bool forward = from == to ? !graph.nodes()[producer].backward : from < to;
        placed.messages.push_back({from, to, forward ? Pass::forward : Pass::backward,
                                   static_cast<double>(graph.type(v).bytes()), from_part, part});
        placed.message_values.push_back(v);
      }
    }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const Value c = graph.contributions()[i];
    if (!c) continue;
    const auto producer = static_cast<std::size_t>(graph.info(c).producer);
    for (const auto& [stage, part] : readers[i])
      if (!placed.runs(producer, stage, part))
        placed.copies.push_back({graph.parameters()[i].name, placed.stage_of[producer],
                                 placed.parts_of[producer].nearest(part), stage, part});
  }
  return placed;
}

}  // namespace echelon
