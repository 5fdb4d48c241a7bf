#include "plan/cut_stage.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/ops/communication.h"
#include "graph/ops/elementwise.h"

namespace echelon {

namespace {

std::size_t id_of(Value v) { return static_cast<std::size_t>(v.id); }

// Copies the nodes of one stage into a graph of their own.
class StageCutter {
 public:
  StageCutter(const Graph& graph, const PlacedGraph& placed, int stage, int part, bool splits_weights,
              const StageSegments& segments)
      : segments_(segments),
        old_(graph),
        placed_(placed),
        stage_(stage),
        part_(part),
        splits_(splits_weights),
        now_(graph.training()),
        map_(static_cast<std::size_t>(graph.values())) {}

  StageGraph run() {
    declare();
    std::vector<bool> waited_for = needed_by_others();
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weights}) {
      result_.begin[static_cast<std::size_t>(pass)] = now_.nodes().size();
      now_.set_backward(pass != Pass::forward);
      receive(pass);
      if (pass == Pass::backward) send_kept();
      copy_nodes(pass, waited_for);
      receive_rest(pass);
      if (pass == (splits_ ? Pass::weights : Pass::backward)) contribute();
    }
    result_.begin[3] = now_.nodes().size();
    for (const auto& [name, v] : old_.outputs())
      if (const Value mine = map_[id_of(v)]) now_.set_output(name, mine);
    for (const auto& c : old_.carries())
      if (const Value from = map_[id_of(c.from)]) {
        if (!map_[id_of(c.to)]) bad_input("'{}' goes from step to step, and a stage begins in between", c.name);
        now_.carry_on(from, map_[id_of(c.to)]);
      }
    now_.set_layer("");
    now_.set_backward(false);
    result_.graph = std::move(now_);
    return std::move(result_);
  }

 private:
  Value& mapped(Value v) { return map_[id_of(v)]; }
  const Node& producer_of(Value v) const { return old_.nodes()[static_cast<std::size_t>(old_.info(v).producer)]; }
  bool runs_here(std::size_t node) const { return placed_.runs(node, stage_, part_); }
  bool sends(std::size_t message, Pass pass) const {
    const StageMessage& m = placed_.messages[message];
    return m.from == stage_ && m.from_part == part_ && m.pass == pass;
  }
  bool receives(std::size_t message, Pass pass) const {
    const StageMessage& m = placed_.messages[message];
    return m.to == stage_ && m.to_part == part_ && m.pass == pass;
  }

  // In the order of the whole graph, but segment by segment where the pass is cut. Gradients of weights are computed in
  // the last one: their memory belongs to the micro-batch before until then.
  void copy_nodes(Pass pass, const std::vector<bool>& waited_for) {
    const int segments = segments_of(segments_, stage_, pass);
    const std::vector<bool> sent = segments > 1 ? leads_to_messages() : std::vector<bool>{};
    const auto segment_of = [&](std::size_t n) {
      const bool ends = pass == Pass::backward && segments > 1 && !sent[n];
      return ends ? segments - 1 : std::min(placed_.segment_of[n], segments - 1);
    };
    for (int segment = 0; segment < segments; ++segment) {
      if (segments > 1)
        result_.segments[static_cast<std::size_t>(pass)].push_back(
            segment == 0 ? result_.begin[static_cast<std::size_t>(pass)] : now_.nodes().size());
      for (std::size_t n = 0; n < old_.nodes().size(); ++n)
        if (runs_here(n) && pass_of(n, waited_for) == pass && segment_of(n) == segment) copy(n, pass);
    }
  }

  // Inputs, carries and parameters that the stage's nodes read, in the order of the whole graph.
  void declare() {
    std::set<int> read;
    for (std::size_t n = 0; n < old_.nodes().size(); ++n)
      if (runs_here(n))
        for (Value v : old_.nodes()[n].in) read.insert(v.id);
    for (const auto& i : old_.inputs()) {
      if (!read.contains(i.value.id)) continue;
      const bool carried = std::ranges::any_of(old_.carries(), [&](const auto& c) { return c.from == i.value; });
      mapped(i.value) = carried ? now_.carry(i.name, old_.type(i.value)) : now_.input(i.name, old_.type(i.value));
    }
    for (std::size_t p = 0; p < old_.parameters().size(); ++p) {
      const Value v = old_.parameter_value(p), c = old_.contributions()[p];
      const bool owns = c && runs_here(static_cast<std::size_t>(old_.info(c).producer));
      if (owns || read.contains(v.id)) mapped(v) = now_.parameter(old_.parameters()[p]);
    }
  }

  // Which backward nodes another stage waits for, in the end. On the first stage nobody waits; there the gradients of
  // weights themselves are put off, and what leads to them is not.
  std::vector<bool> needed_by_others() const {
    const auto& nodes = old_.nodes();
    std::vector<bool> needed(nodes.size(), !splits_);
    if (!splits_) return needed;
    std::vector<bool> contributes(static_cast<std::size_t>(old_.values()), false), sends = contributes;
    for (Value c : old_.contributions())
      if (c) contributes[id_of(c)] = true;
    bool any = false;
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (this->sends(k, Pass::backward)) {
        sends[id_of(placed_.message_values[k])] = true;
        any = any || !placed_.messages[k].inside_stage();
      }
    std::vector<bool> read_by_needed(static_cast<std::size_t>(old_.values()), false);
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (!runs_here(n)) continue;
      for (Value v : nodes[n].out)
        needed[n] = needed[n] || read_by_needed[id_of(v)] || sends[id_of(v)] || (!any && !contributes[id_of(v)]);
      if (needed[n])
        for (Value v : nodes[n].in) read_by_needed[id_of(v)] = true;
    }
    return needed;
  }
  // Which nodes here something is sent of, in the end.
  std::vector<bool> leads_to_messages() const {
    std::vector<bool> read(static_cast<std::size_t>(old_.values()), false), leads(old_.nodes().size(), false);
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (placed_.messages[k].from == stage_ && placed_.messages[k].from_part == part_)
        read[id_of(placed_.message_values[k])] = true;
    for (std::size_t n = old_.nodes().size(); n-- > 0;) {
      if (!runs_here(n)) continue;
      leads[n] = std::ranges::any_of(old_.nodes()[n].out, [&](Value v) { return read[id_of(v)]; });
      if (leads[n])
        for (Value v : old_.nodes()[n].in)
          if (v) read[id_of(v)] = true;
    }
    return leads;
  }
  Pass pass_of(std::size_t n, const std::vector<bool>& waited_for) const {
    if (!old_.nodes()[n].backward) return Pass::forward;
    return waited_for[n] ? Pass::backward : Pass::weights;
  }

  void receive_one(std::size_t message) {
    const Value v = placed_.message_values[message];
    now_.set_layer(producer_of(v).layer);
    mapped(v) = ops::receive(now_, old_.type(v), static_cast<int>(message));
  }
  // From other stages: what a pass needs is there before it begins.
  void receive(Pass pass) {
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (receives(k, pass) && !placed_.messages[k].inside_stage()) receive_one(k);
  }
  // From other parts of this stage, which are in the same pass: when it is needed, or at the end of the pass.
  void receive_for(const Node& node, Pass pass) {
    for (Value v : node.in)
      for (std::size_t k = 0; v && !mapped(v) && k < placed_.messages.size(); ++k)
        if (placed_.message_values[k] == v && receives(k, pass)) receive_one(k);
  }
  void receive_rest(Pass pass) {
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (receives(k, pass) && !mapped(placed_.message_values[k])) receive_one(k);
  }
  // Backward messages that forward has computed.
  void send_kept() {
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (sends(k, Pass::backward) && !producer_of(placed_.message_values[k]).backward) send(k);
  }
  void send(std::size_t message) {
    const Value v = placed_.message_values[message];
    now_.set_layer(producer_of(v).layer);
    ops::send(now_, mapped(v), static_cast<int>(message));
  }

  void copy(std::size_t n, Pass pass) {
    const Node& node = old_.nodes()[n];
    receive_for(node, pass);
    std::vector<Value> in;
    for (Value v : node.in) in.push_back(v ? mapped(v) : v);
    now_.set_layer(node.layer);
    now_.set_slice(node.slice);
    const auto out = now_.add(node.op, in);
    for (std::size_t o = 0; o < out.size(); ++o) {
      mapped(node.out[o]) = out[o];
      now_.set_layout(out[o], old_.type(node.out[o]).layout);
    }
    for (std::size_t k = 0; k < placed_.messages.size(); ++k)
      if (sends(k, pass) && std::ranges::find(node.out, placed_.message_values[k]) != node.out.end()) send(k);
  }

  // A contribution is written in the last pass: before it, the memory belongs to the micro-batch before.
  void contribute() {
    const Pass last = splits_ ? Pass::weights : Pass::backward;
    for (std::size_t p = 0; p < old_.parameters().size(); ++p) {
      const Value c = old_.contributions()[p];
      if (!c || !runs_here(static_cast<std::size_t>(old_.info(c).producer))) continue;
      Value mine = mapped(c);
      const auto& cut = result_.segments[static_cast<std::size_t>(last)];
      const std::size_t begin = cut.empty() ? result_.begin[static_cast<std::size_t>(last)] : cut.back();
      if (static_cast<std::size_t>(now_.info(mine).producer) < begin) {
        now_.set_layer(producer_of(c).layer);
        mine = ops::copy(now_, mine);
      }
      now_.set_contribution(mapped(old_.parameter_value(p)), mine);
    }
  }

  const StageSegments& segments_;
  const Graph& old_;
  const PlacedGraph& placed_;
  const int stage_, part_;
  const bool splits_;
  Graph now_;
  std::vector<Value> map_;
  StageGraph result_{.graph = Graph(true)};
};

}  // namespace

StageGraph cut_stage(const Graph& graph, const PlacedGraph& placed, int stage, int part, bool splits_weights,
                     const StageSegments& segments) {
  return StageCutter(graph, placed, stage, part, splits_weights, segments).run();
}

}  // namespace echelon
