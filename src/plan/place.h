#pragma once
// The place pass: says which stage runs each node of a training graph, after all passes that could change its
// arithmetic, and which parts of a stage where slices of layers are on several ranks. The nodes stay what they are, so
// they compute the same bits; only where they run is new. A value that a node somewhere else reads becomes a message.
// plan/cut_stage.h makes the graphs.
//
// A forward node runs on its layer's stage, or on a later one if it reads something from there (fused ops); a backward
// node on its layer's stage or on an earlier one. So forward messages go to later stages, and backward messages to
// earlier ones. A node of a slice runs on the part that has the slice, or on several where its layer is split fewer
// ways than its stage; a node of no slice on all parts of its stage, which compute the same. A parameter belongs to the
// stage that computes its contribution; a stage that also reads it (an embedding that is scored with at the end) has a
// copy, which it gets after every update. Pure functions.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/replay.h"
#include "plan/stages.h"

namespace echelon {

// Neighbouring parts of a stage.
struct PartRange {
  int first = 0, last = 1;
  int count() const { return last - first; }
  bool contains(int part) const { return part >= first && part < last; }
  // Which of them a part of some stage turns to: itself if it can.
  int nearest(int part) const { return contains(part) ? part : first + part % count(); }
};

// Over how many parts the slices of layers are spread.
struct PartCounts {
  int parts = 1;                    // of every stage
  std::map<std::string, int> ways;  // of layers that are split fewer ways than their stage: each divides its parts
  std::vector<int> of_stage = {};   // by stage, where stages differ; `parts` is the most of them

  int of(int stage) const { return of_stage.empty() ? parts : of_stage[static_cast<std::size_t>(stage)]; }
};

struct PlacedGraph {
  int parts = 1;                       // of a stage, at most
  std::vector<int> stage_of;           // by node
  std::vector<PartRange> parts_of;     // by node: which parts of its stage compute it, all the same
  std::vector<int> segment_of;         // by node: how many exchanges between parts its pass has behind it there
  std::vector<StageMessage> messages;  // by number
  std::vector<Value> message_values;   // the same: what is sent
  struct Copy {                        // of a parameter on a stage that reads it, but does not own it
    std::string parameter;
    int owner = 0, owner_part = 0, reader = 0, reader_part = 0;
  };
  std::vector<Copy> copies;

  bool runs(std::size_t node, int stage, int part) const {
    return stage_of[node] == stage && parts_of[node].contains(part);
  }
};

// The slices that a graph was made with; 1 if it has none.
int slices_of(const Graph& graph);

// By node: the stage of its layer, or the one that its operands force it to.
std::vector<int> stages_of_nodes(const Graph& graph, const StagePartition& partition);

// `graph` as optimise() gives it (graph/program.h); the parts of every stage divide its slices.
PlacedGraph place_nodes(const Graph& graph, const StagePartition& partition, const PartCounts& counts = {});

// Into how many segments each stage's passes are cut by exchanges between its parts.
StageSegments segments_of_stages(const Graph& graph, const PlacedGraph& placed, int stages);

}  // namespace echelon
