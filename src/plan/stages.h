#pragma once
// Which layers make up a stage: layers in the order in which the graph runs them, cut into neighbours of about equal
// work. Exact: no other cut has a largest stage with less work; among those that are within two per cent of it, the one
// whose stages, with what they send, are most alike. Layers may be pinned to stages. Pure functions.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon {

// What a node costs, in floating-point operations: an element that is written takes about as long as eight of them.
double work_of(const Graph& graph, const Node& node);

struct LayerWork {
  std::string layer;
  double work = 0;   // of its nodes, forward and backward
  double sends = 0;  // bytes that would go from the layers up to this one to later ones, if it were the last of a stage
};

// In the order of the first forward node of each.
std::vector<LayerWork> layer_work(const Graph& graph);

struct StagePartition {
  std::vector<std::vector<std::string>> layers;  // by stage
  std::map<std::string, int> stage_of;           // by layer

  int stages() const { return static_cast<int>(layers.size()); }
};

// By layer: on which stage it has to be.
using PinnedStages = std::map<std::string, int>;

bool can_cut_into_stages(const std::vector<std::string>& layers, int stages, const PinnedStages& pins);
// `stages` is at most the number of layers, and the pins can be had.
StagePartition cut_into_stages(const std::vector<LayerWork>& layers, int stages, const PinnedStages& pins = {});

// Stages that begin at these layers, the first one at the first layer.
StagePartition cut_at(const std::vector<LayerWork>& layers, const std::vector<std::string>& cuts);

}  // namespace echelon
