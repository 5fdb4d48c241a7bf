#include "graph/passes/slice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"

namespace echelon {

namespace {

// "block0.up.weight" and slice 2: "block0.up.slice2.weight".
std::string slice_name(const std::string& name, int slice) {
  const std::size_t dot = name.rfind('.');
  const std::size_t at = dot == std::string::npos ? 0 : dot + 1;
  return fmt::format("{}slice{}.{}", name.substr(0, at), slice, name.substr(at));
}

// [.., n, ..] with n of several blocks beside each other as [.., blocks, n / blocks, ..].
Shape with_blocks(const Shape& shape, int axis, int blocks) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<std::size_t>(axis)] /= blocks;
  dims.insert(dims.begin() + axis, blocks);
  return Shape(dims);
}

class Slicer {
 public:
  Slicer(const Graph& old, Slicing how, const Cuts& decided)
      : old_(old),
        slices_(how.slices),
        strips_(how.strips),
        columns_(how.columns),
        decided_(decided),
        states_(static_cast<std::size_t>(old.values())),
        result_{Graph(old.training()), {}, {}, {}} {}

  Sliced run() {
    for (const auto& i : old_.inputs()) {
      state(i.value).whole = add_input(i);
      if (columns_) into_columns(i);
    }
    find_last_layers();
    for (const Node& node : old_.nodes()) visit(node);
    g_.set_layer("output");
    for (const auto& [name, v] : old_.outputs()) g_.set_output(name, whole(v));
    for (const auto& c : old_.carries()) g_.carry_on(state(c.from).whole, whole(c.to));
    contribute();
    g_.set_layer("");
    return std::move(result_);
  }

 private:
  // A value of the old graph in the new one: whole, in parts, or both once somebody asked.
  struct State {
    Value whole;
    std::vector<Value> parts;
    Cut cut;
  };
  State& state(Value v) { return states_[static_cast<std::size_t>(v.id)]; }
  static std::size_t index(int slice) { return static_cast<std::size_t>(slice); }

  Value add_input(const Graph::Input& input) {
    const bool carried = std::ranges::any_of(old_.carries(), [&](const auto& c) { return c.from == input.value; });
    const Type& type = old_.type(input.value);
    return carried ? g_.carry(input.name, type) : g_.input(input.name, type);
  }

  // Images are in columns from the start; whoever reads them follows (graph/ops/strips.h).
  void into_columns(const Graph::Input& input) {
    const Type& type = old_.type(input.value);
    if (type.shape.rank() == 4 && type.shape[3] >= slices_) {
      g_.set_layer("columns");
      parts(input.value, Cut{3});
    }
  }

  // Which values no later layer with weights depends on.
  void find_last_layers() {
    last_.assign(states_.size(), true);
    for (std::size_t n = old_.nodes().size(); n-- > 0;) {
      const Node& node = old_.nodes()[n];
      const bool weights = std::ranges::any_of(node.in, [&](Value v) {
        return old_.info(v).source == ValueInfo::Source::parameter && old_.type(v).shape.rank() > 1;
      });
      const bool before = weights || std::ranges::any_of(node.out, [&](Value v) { return !last_[index(v.id)]; });
      if (before)
        for (Value v : node.in) last_[index(v.id)] = false;
    }
    for (const Node& node : old_.nodes())
      for (std::size_t i = 0; i < node.in.size(); ++i) {
        int& blocks = blocks_[node.in[i].id];
        const int wanted = node.op->blocks(static_cast<int>(i));
        blocks = blocks == 0 || blocks == wanted ? wanted : 1;  // readers that differ get it in one block
      }
  }

  void visit(const Node& node) {
    g_.set_layer(node.layer);
    std::vector<Cut> arrives;
    for (Value v : node.in) arrives.push_back(is_new_parameter(v) ? decided(v).value_or(Cut{}) : state(v).cut);
    const auto types = old_.types(node.in);
    const auto blocks = blocks_.find(node.out[0].id);
    auto rule = node.op->slice_rule({.in = types,
                                     .arrives = arrives,
                                     .slices = slices_,
                                     .strips = strips_,
                                     .blocks = blocks == blocks_.end() ? 1 : blocks->second,
                                     .last = last_[index(node.out[0].id)]});
    if (rule && rule->units % slices_ != 0) {
      result_.indivisible.push_back({node.layer, rule->units, std::string(rule->unit)});
      rule.reset();
    }
    if (rule)
      in_slices(node, *rule);
    else
      at_once(node);
  }

  void at_once(const Node& node) {
    std::vector<Value> in;
    for (Value v : node.in) in.push_back(whole(v));
    keep(node, g_.add(node.op, in));
  }

  void keep(const Node& node, const std::vector<Value>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) state(node.out[i]).whole = out[i];
  }

  void in_slices(const Node& node, const SliceRule& rule) {
    std::vector<std::vector<Value>> in(index(slices_)), out(index(slices_));
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const bool cut = !rule.in[i].is_whole();
      for (int s = 0; s < slices_; ++s)
        if (s == 0 || rule.first_only != static_cast<int>(i))
          in[index(s)].push_back(cut ? parts(node.in[i], rule.in[i])[index(s)] : whole(node.in[i]));
    }
    if (rule.build) out = rule.build(g_, in);
    for (int s = 0; s < slices_ && !rule.build; ++s) {
      g_.set_slice(s);
      out[index(s)] = g_.add(rule.op ? rule.op(s) : node.op, in[index(s)]);
    }
    g_.set_slice(-1);
    if (rule.join) {
      keep(node, rule.join(g_, out, in[0]));
      return;
    }
    for (std::size_t i = 0; i < rule.out.size(); ++i) {
      State& to = state(node.out[i]);
      if (rule.out[i].is_whole()) {  // made once for all
        to.whole = out[0][i];
        continue;
      }
      to.cut = rule.out[i];
      for (int s = 0; s < slices_; ++s) to.parts.push_back(out[index(s)][i]);
    }
  }

  bool is_new_parameter(Value v) {
    return old_.info(v).source == ValueInfo::Source::parameter && !state(v).whole && state(v).parts.empty();
  }
  const Parameter& parameter(Value v) const { return old_.parameters()[index(old_.info(v).producer)]; }

  Value whole(Value v) {
    State& s = state(v);
    if (is_new_parameter(v)) make_parameters(v, decided(v).value_or(Cut{}));
    if (s.whole) return s.whole;
    invariant(s.cut.axis >= 0, "only the op itself reads what it keeps for its gradient");
    std::vector<Value> parts = s.parts;
    if (s.cut.blocks == 1) return s.whole = ops::concat(g_, parts, s.cut.axis);
    for (Value& p : parts) p = ops::reshape(g_, p, with_blocks(g_.type(p).shape, s.cut.axis, s.cut.blocks));
    return s.whole = ops::reshape(g_, ops::concat(g_, parts, s.cut.axis + 1), old_.type(v).shape);
  }

  const std::vector<Value>& parts(Value v, const Cut& cut) {
    State& s = state(v);
    if (is_new_parameter(v)) make_parameters(v, decided(v).value_or(cut));
    if (!s.parts.empty() && s.cut == cut) return s.parts;
    const Value x = whole(v);
    s.parts.clear();  // cut along another axis until now
    s.cut = cut;
    const Shape& shape = old_.type(v).shape;
    std::vector<std::int64_t> extents;
    for (int i = 0; i < slices_; ++i) extents.push_back(part_shape(shape, cut, slices_, i)[cut.axis] / cut.blocks);
    if (cut.blocks == 1) return s.parts = ops::split(g_, x, cut.axis, extents);
    const Value blocks = ops::reshape(g_, x, with_blocks(shape, cut.axis, cut.blocks));
    s.parts = ops::split(g_, blocks, cut.axis + 1, extents);
    for (int i = 0; i < slices_; ++i)
      s.parts[index(i)] = ops::reshape(g_, s.parts[index(i)], part_shape(shape, cut, slices_, i));
    return s.parts;
  }

  std::optional<Cut> decided(Value v) const {
    const auto it = decided_.find(parameter(v).name);
    return it == decided_.end() ? std::nullopt : std::optional(it->second);
  }

  void make_parameters(Value v, const Cut& cut) {
    const Parameter& of = parameter(v);
    State& s = state(v);
    s.cut = cut;
    result_.cuts[of.name] = cut;
    if (cut.is_whole()) {
      s.whole = g_.parameter(of);
      return;
    }
    for (int i = 0; i < slices_; ++i) {
      Parameter part = of;
      part.name = slice_name(of.name, i);
      part.shape = part_shape(of.shape, cut, slices_, i);
      s.parts.push_back(g_.parameter(part));
      result_.parameters.push_back({part.name, of.name, of.shape, cut, i});
    }
  }

  // What a step contributes to statistics: in parts if it is made in parts.
  void contribute() {
    for (std::size_t i = 0; i < old_.parameters().size(); ++i) {
      const Value p = old_.parameter_value(i), c = old_.contributions()[i];
      if (!c) {
        if (is_new_parameter(p)) whole(p);  // nobody read it: it stays as it is
        continue;
      }
      if (state(c).parts.empty()) {
        g_.set_contribution(whole(p), whole(c));
        continue;
      }
      const auto of_slices = parts(p, state(c).cut);
      for (int s = 0; s < slices_; ++s) g_.set_contribution(of_slices[index(s)], state(c).parts[index(s)]);
    }
  }

  const Graph& old_;
  int slices_;
  bool strips_, columns_;
  const Cuts& decided_;
  std::vector<State> states_;
  std::vector<bool> last_;     // by old value
  std::map<int, int> blocks_;  // by old value: as its readers want it
  Sliced result_;
  Graph& g_ = result_.graph;
};

}  // namespace

Sliced slice(const Graph& forward, Slicing how, const Cuts& decided) {
  if (how.slices == 1) return {forward, {}, {}, {}};
  return Slicer(forward, how, decided).run();
}

}  // namespace echelon
