#include "plan/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/glob.h"
#include "base/text.h"

namespace echelon {

namespace {

// "block2" of "block2.attention".
std::string first_name(const std::string& layer) { return layer.substr(0, layer.find('.')); }

bool matches_any(const std::string& patterns, const std::string& name) {
  return std::ranges::any_of(split(patterns, '|'), [&](std::string_view p) { return fits(p, name); });
}

// The segment that a layer is computed again with, by the layer's first name; layers that are kept are not in it.
std::map<std::string, int> segments_of(const StageGraph& stage, const std::string& what) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < stage.begin[1]; ++n) {
    const std::string name = first_name(stage.graph.nodes()[n].layer);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::map<std::string, int> segments;
  const auto count = static_cast<double>(names.size());
  const int cuts = what == "sqrt" ? static_cast<int>(std::ceil(std::sqrt(count))) : 1;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (what == "all" || what == "sqrt")
      segments[names[i]] = static_cast<int>(static_cast<double>(i) * cuts / count);
    else if (matches_any(what, names[i]))
      segments[names[i]] = static_cast<int>(i);
  return segments;
}

class Recomputer {
 public:
  Recomputer(const StageGraph& stage, const std::string& what)
      : old_(stage.graph), begin_(stage.begin), segments_(segments_of(stage, what)), rewriter_(old_) {}

  StageGraph run() {
    std::array<std::size_t, 4> begin{};
    for (std::size_t pass = 0; pass < 3; ++pass) {
      begin[pass] = graph().nodes().size();
      for (std::size_t n = begin_[pass]; n < begin_[pass + 1]; ++n) {
        const Node& node = old_.nodes()[n];
        std::vector<Value> in;
        for (const Value v : node.in) in.push_back(!v ? v : pass == 0 ? rewriter_[v] : again(v, segment_of(node)));
        const auto out = rewriter_.emit(node, node.op, std::move(in));
        for (std::size_t i = 0; i < out.size(); ++i) graph().set_layout(out[i], old_.type(node.out[i]).layout);
      }
    }
    begin[3] = graph().nodes().size();
    return {rewriter_.finish(), begin};
  }

 private:
  Graph& graph() { return rewriter_.graph(); }
  int segment_of(const Node& node) const {
    const auto it = segments_.find(first_name(node.layer));
    return it == segments_.end() ? -1 : it->second;
  }

  // The value as a backward node of a segment reads it: computed once more if it comes from the same segment.
  Value again(Value v, int segment) {
    const ValueInfo& info = old_.info(v);
    const auto producer = static_cast<std::size_t>(info.producer);
    if (info.source != ValueInfo::Source::node || producer >= begin_[1] || segment < 0) return rewriter_[v];
    const Node& node = old_.nodes()[producer];
    if (segment_of(node) != segment || node.op->name() == "receive") return rewriter_[v];
    if (const auto it = made_.find(v.id); it != made_.end()) return it->second;
    std::vector<Value> in;
    for (const Value i : node.in) in.push_back(i ? again(i, segment) : i);
    graph().set_layer(node.layer);
    graph().set_backward(true);
    graph().set_slice(node.slice);
    const auto out = graph().add(node.op, std::move(in));
    for (std::size_t i = 0; i < out.size(); ++i) {
      made_[node.out[i].id] = out[i];
      graph().set_layout(out[i], old_.type(node.out[i]).layout);
    }
    return made_.at(v.id);
  }

  const Graph& old_;
  const std::array<std::size_t, 4> begin_;
  const std::map<std::string, int> segments_;  // by first names of layers
  Rewriter rewriter_;
  std::map<int, Value> made_;  // by value of the old graph
};

}  // namespace

StageGraph recompute(StageGraph stage, const std::string& what) {
  if (what == "none") return stage;
  return Recomputer(stage, what).run();
}

std::string recompute_refusal(const std::string& what, const std::vector<std::string>& layers) {
  if (what == "none" || what == "all" || what == "sqrt") return "";
  if (std::ranges::any_of(layers, [&](const std::string& l) { return matches_any(what, first_name(l)); })) return "";
  std::vector<std::string> names;
  for (const std::string& l : layers)
    if (std::ranges::find(names, first_name(l)) == names.end()) names.push_back(first_name(l));
  if (names.size() > 12) names.resize(12), names.emplace_back("...");
  return fmt::format("recompute={} is neither none, all nor sqrt, and no layer has such a name ({})", what,
                     fmt::join(names, " "));
}

}  // namespace echelon
