#pragma once
// What operations cost: seconds of one core, by (operation, shapes, layouts). What was measured on this machine is
// remembered as it is; in between it is interpolated; where nothing like it was measured, a roofline says it: the
// longer of the arithmetic at the core's multiply-add peak and of the bytes at the memory's bandwidth, each times the
// share of the peak that measured operations of this machine have reached.
//
// Two numbers for everything: with the rest of the machine idle, and with all its cores busy. Cores share caches,
// memory and power, so the second is larger. Plain data; not thread-safe while it is being filled.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon::foresight {

struct CoreSeconds {
  double alone = 0, together = 0;  // nobody else works; all cores do
  // With so many busy cores of a machine with `cores`.
  double with(int busy, int cores) const;
  friend bool operator==(const CoreSeconds&, const CoreSeconds&) = default;
};

struct OpCost {
  CoreSeconds seconds;
  double flops = 0, bytes = 0;  // of one run: read and written
  friend bool operator==(const OpCost&, const OpCost&) = default;
};

struct Roofline {  // of one core, a second
  double flops = 5e10, bytes = 1e10;
  friend bool operator==(const Roofline&, const Roofline&) = default;
};

// How a cost was found.
enum class CostSource { measured, interpolated, roofline };
std::string_view name_of(CostSource source);

struct FoundCost {
  CoreSeconds seconds;
  CostSource source = CostSource::roofline;
};

class OpCosts {
 public:
  // "conv2d 5x5 stride 1 pad 2": all of one family differ in shapes only.
  static std::string family_of(const Node& node);
  static std::string shapes_of(const Graph& graph, const Node& node);  // "f32[8, 1, 28, 28] channel8, ... -> ..."
  static std::string name_of(const Node& node);  // "conv2 conv2d": for people, and the same in every run
  static bool computes(const Node& node);        // else it sends, receives or waits
  // What a node reads and writes, and its arithmetic; no seconds.
  static OpCost size_of(const Graph& graph, const Node& node);

  bool knows(const Graph& graph, const Node& node) const;
  FoundCost of(const Graph& graph, const Node& node) const;
  // The same for what is no node: "update momentum" of so many numbers, "shard" of a model.
  FoundCost of(const std::string& family, const std::string& shapes, const OpCost& size) const;
  void set(const std::string& family, const std::string& shapes, const OpCost& cost);

  Roofline roofline;
  using Shapes = std::map<std::string, OpCost>;
  const std::map<std::string, Shapes>& families() const { return families_; }
  std::size_t size() const;
  friend bool operator==(const OpCosts& a, const OpCosts& b) {
    return a.roofline == b.roofline && a.families_ == b.families_;
  }

 private:
  CoreSeconds roofline_seconds(const OpCost& size) const;

  std::map<std::string, Shapes> families_;
};

}  // namespace echelon::foresight
