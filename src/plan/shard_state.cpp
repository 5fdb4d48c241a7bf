#include "plan/shard_state.h"

#include <map>

#include "graph/ops/communication.h"

namespace echelon {

namespace {

class StateSharder {
 public:
  StateSharder(const StageGraph& stage, int zero, int prefetch)
      : old_(stage.graph), begin_(stage.begin), gathers_(zero >= 3), prefetch_(prefetch), rewriter_(old_) {
    for (std::size_t p = 0; p < old_.contributions().size(); ++p)
      if (const Value c = old_.contributions()[p]) contributed_.emplace(c.id, static_cast<int>(p));
  }

  StageGraph run() {
    std::array<std::size_t, 4> begin{};
    for (std::size_t pass = 0; pass < 3; ++pass) {
      begin[pass] = graph().nodes().size();
      if (gathers_) list_uses(begin_[pass], begin_[pass + 1]);
      for (std::size_t n = begin_[pass]; n < begin_[pass + 1]; ++n) {
        gather_for(n);
        rewriter_.copy(old_.nodes()[n]);
        keep_layouts(old_.nodes()[n]);
        contribute(old_.nodes()[n]);
      }
    }
    begin[3] = graph().nodes().size();
    return {finish(), begin};
  }

 private:
  Graph& graph() { return rewriter_.graph(); }

  // The parameters that a pass reads, in the order of their first uses.
  void list_uses(std::size_t from, std::size_t to) {
    uses_.clear();
    started_.clear();
    next_use_ = 0;
    std::map<int, bool> seen;
    for (std::size_t n = from; n < to; ++n)
      for (const Value v : old_.nodes()[n].in)
        if (v && old_.info(v).source == ValueInfo::Source::parameter && seen.emplace(v.id, true).second)
          uses_.push_back({n, v});
  }
  void gather_for(std::size_t node) {
    for (; gathers_ && next_use_ < uses_.size() && uses_[next_use_].node == node; ++next_use_) {
      const std::size_t ahead = std::min(uses_.size(), next_use_ + static_cast<std::size_t>(prefetch_) + 1);
      while (started_.size() < ahead) start(uses_[started_.size()].value, old_.nodes()[node]);
      describe(old_.nodes()[node]);
      const Value v = uses_[next_use_].value;
      rewriter_.map(v, ops::finish_gather(graph(), started_[next_use_], old_.info(v).producer));
    }
  }
  void start(Value parameter, const Node& before) {
    describe(before);
    started_.push_back(ops::start_gather(graph(), old_.type(parameter), old_.info(parameter).producer));
  }
  void describe(const Node& node) {
    graph().set_layer(node.layer);
    graph().set_backward(node.backward);
    graph().set_slice(-1);
  }
  void keep_layouts(const Node& node) {
    for (const Value v : node.out) graph().set_layout(rewriter_[v], old_.type(v).layout);
  }
  void contribute(const Node& node) {
    for (const Value v : node.out)
      if (const auto it = contributed_.find(v.id); it != contributed_.end()) {
        describe(node);
        ops::contribute(graph(), rewriter_[v], it->second);
      }
  }
  // Without contributions: those have been sent.
  Graph finish() {
    Graph made = rewriter_.finish();
    for (std::size_t p = 0; p < made.parameters().size(); ++p) made.set_contribution(made.parameter_value(p), {});
    return made;
  }

  struct Use {
    std::size_t node;
    Value value;
  };
  const Graph& old_;
  const std::array<std::size_t, 4> begin_;
  const bool gathers_;
  const int prefetch_;
  Rewriter rewriter_;
  std::multimap<int, int> contributed_;  // value, parameter
  std::vector<Use> uses_;
  std::vector<Value> started_;  // the same
  std::size_t next_use_ = 0;
};

}  // namespace

StageGraph shard_state(StageGraph stage, int zero, int prefetch) {
  if (zero < 2) return stage;
  return StateSharder(stage, zero, prefetch).run();
}

}  // namespace echelon
