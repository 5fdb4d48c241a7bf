#include "graph/passes/slice.h"

#include <algorithm>

#include "graph/ops/strips.h"
#include "graph/passes/slice_values.h"

namespace echelon {

namespace {

RowRange hull(RowRange a, RowRange b) { return {std::min(a.begin, b.begin), std::max(a.end, b.end)}; }

// By old value: the rows of an image that each slice computes; empty: its own strip.
using StripRows = std::vector<std::vector<RowRange>>;

class Slicer {
 public:
  // `rows`: where strips overlap; empty: nowhere.
  Slicer(const Graph& old, Slicing how, const Cuts& decided, const StripRows& rows = {})
      : old_(old),
        slices_(how.slices),
        overlap_(!rows.empty()),
        strips_(how.strips),
        columns_(how.columns),
        grid_columns_(how.grid ? how.grid_columns() : 1),
        result_{Graph(old.training()), {}, {}, {}},
        values_(old, how.slices, decided, result_) {
    for (std::size_t v = 0; v < rows.size(); ++v) values_.place({static_cast<int>(v)}).rows = rows[v];
  }

  Sliced run() {
    for (const auto& i : old_.inputs()) {
      values_.place(i.value).whole = add_input(i);
      if (columns_) into_columns(i);
    }
    find_last_layers();
    for (const Node& node : old_.nodes()) visit(node);
    g_.set_layer("output");
    for (const auto& [name, v] : old_.outputs()) g_.set_output(name, values_.whole(v));
    for (const auto& c : old_.carries()) {
      if (const ValueInfo& next = old_.info(c.to); next.source == ValueInfo::Source::node)
        g_.set_layer(old_.nodes()[static_cast<std::size_t>(next.producer)].layer);  // a stage reads what it carried on
      g_.carry_on(values_.place(c.from).whole, values_.whole(c.to));
    }
    g_.set_layer("output");
    contribute();
    g_.set_layer("");
    return std::move(result_);
  }

  // After run(): the rows that every slice has to compute, so that nobody borrows what can be computed.
  StripRows overlapping_rows() const {
    StripRows rows(values_.count());
    for (auto strip = in_strips_.rbegin(); strip != in_strips_.rend(); ++strip) {
      const Node& node = *strip->node;
      for (std::size_t i = 0; i < node.in.size(); ++i) {
        if (!(strip->cuts[i] == strip->out)) continue;  // weights
        const std::int64_t extent = old_.type(node.in[i]).shape[strip->out.axis];
        auto& needed = rows[as_index(node.in[i].id)];
        if (needed.empty()) needed = ops::equal_strips(extent, slices_);
        for (int s = 0; s < slices_; ++s) {
          RowRange out = values_.own_rows(node.out[0], strip->out.axis)[as_index(s)];
          for (Value v : node.out)
            if (!rows[as_index(v.id)].empty() && strip->op.widens) out = hull(out, rows[as_index(v.id)][as_index(s)]);
          const RowRange sees = strip->op.window.sees(out);
          needed[as_index(s)] =
              hull(needed[as_index(s)], {std::max<std::int64_t>(sees.begin, 0), std::min(sees.end, extent)});
        }
      }
    }
    return rows;
  }

 private:
  struct InStrips {  // a node that has become one for each strip
    const Node* node;
    std::vector<Cut> cuts;
    Cut out;
    StripOp op;
  };

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
      values_.parts(input.value, Cut{3});
    }
  }

  // Which values no later layer with weights depends on.
  void find_last_layers() {
    last_.assign(values_.count(), true);
    for (std::size_t n = old_.nodes().size(); n-- > 0;) {
      const Node& node = old_.nodes()[n];
      const bool weights = std::ranges::any_of(node.in, [&](Value v) {
        return old_.info(v).source == ValueInfo::Source::parameter && old_.type(v).shape.rank() > 1;
      });
      const bool before = weights || std::ranges::any_of(node.out, [&](Value v) { return !last_[as_index(v.id)]; });
      if (before)
        for (Value v : node.in) last_[as_index(v.id)] = false;
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
    for (Value v : node.in) arrives.push_back(values_.cut_of(v));
    const auto types = old_.types(node.in);
    const auto blocks = blocks_.find(node.out[0].id);
    auto rule = node.op->slice_rule({.in = types,
                                     .arrives = arrives,
                                     .slices = slices_,
                                     .strips = strips_,
                                     .columns = grid_columns_,
                                     .blocks = blocks == blocks_.end() ? 1 : blocks->second,
                                     .last = last_[as_index(node.out[0].id)]});
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
    for (Value v : node.in) in.push_back(values_.whole(v));
    keep(node, g_.add(node.op, in));
  }

  void keep(const Node& node, const std::vector<Value>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) values_.place(node.out[i]).whole = out[i];
  }

  // Each slice computes the rows that its later layers need, from those that it has.
  void in_overlapping_strips(const Node& node, const SliceRule& rule) {
    const int axis = rule.out[0].axis;
    const std::vector<RowRange> own = values_.own_rows(node.out[0], axis);
    std::vector<RowRange> rows = own;
    for (Value v : node.out)
      for (int s = 0; rule.strip->widens && !values_.place(v).rows.empty() && s < slices_; ++s)
        rows[as_index(s)] = hull(rows[as_index(s)], values_.place(v).rows[as_index(s)]);
    std::vector<std::vector<Value>> out;
    for (int s = 0; s < slices_; ++s) {
      std::vector<Value> in;
      for (std::size_t i = 0; i < node.in.size(); ++i)
        in.push_back(rule.in[i].is_whole() ? values_.whole(node.in[i])
                     : !(rule.in[i] == rule.out[0])
                         ? values_.parts(node.in[i], rule.in[i])[as_index(s)]
                         : values_.rows_for(node.in[i], axis, s, *rule.strip, rows[as_index(s)]));
      g_.set_slice(s);
      out.push_back(g_.add(rule.strip->op ? rule.strip->op : node.op, in));
    }
    g_.set_slice(-1);
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      SlicedValues::Place& to = values_.place(node.out[i]);
      to.cut = rule.out[i];
      for (const auto& of_slice : out) (rows != own ? to.wide : to.parts).push_back(of_slice[i]);
      if (rows != own) to.rows = rows;
    }
  }

  void in_slices(const Node& node, const SliceRule& rule) {
    const bool strips = rule.strip && rule.out[0].axis >= 2 && old_.type(node.out[0]).shape.rank() == 4;
    if (strips) in_strips_.push_back({&node, rule.in, rule.out[0], *rule.strip});
    if (strips && overlap_) return in_overlapping_strips(node, rule);
    std::vector<std::vector<Value>> in(as_index(slices_)), out(as_index(slices_));
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const bool cut = !rule.in[i].is_whole();
      for (int s = 0; s < slices_; ++s)
        if (s == 0 || rule.first_only != static_cast<int>(i))
          in[as_index(s)].push_back(cut ? values_.parts(node.in[i], rule.in[i])[as_index(s)]
                                        : values_.whole(node.in[i]));
    }
    if (rule.build) out = rule.build(g_, in);
    for (int s = 0; s < slices_ && !rule.build; ++s) {
      g_.set_slice(s);
      out[as_index(s)] = g_.add(rule.op ? rule.op(s) : node.op, in[as_index(s)]);
    }
    g_.set_slice(-1);
    if (rule.join) {
      keep(node, rule.join(g_, out, in[0]));
      return;
    }
    for (std::size_t i = 0; i < rule.out.size(); ++i) {
      SlicedValues::Place& to = values_.place(node.out[i]);
      if (rule.out[i].is_whole()) {  // made once for all
        to.whole = out[0][i];
        continue;
      }
      to.cut = rule.out[i];
      for (int s = 0; s < slices_; ++s) to.parts.push_back(out[as_index(s)][i]);
    }
  }

  // What a step contributes to statistics: in parts if it is made in parts.
  void contribute() {
    for (std::size_t i = 0; i < old_.parameters().size(); ++i) {
      const Value p = old_.parameter_value(i), c = old_.contributions()[i];
      if (!c) {
        if (values_.is_new_parameter(p)) values_.whole(p);  // nobody read it: it stays as it is
        continue;
      }
      const std::vector<Value>& made = values_.as_made(c);
      if (made.empty()) {
        g_.set_contribution(values_.whole(p), values_.whole(c));
        continue;
      }
      const auto of_slices = values_.parts(p, values_.place(c).cut);
      for (int s = 0; s < slices_; ++s) g_.set_contribution(of_slices[as_index(s)], made[as_index(s)]);
    }
  }

  const Graph& old_;
  int slices_;
  bool overlap_;  // strips do
  std::vector<InStrips> in_strips_;
  bool strips_, columns_;
  int grid_columns_;
  std::vector<bool> last_;     // by old value
  std::map<int, int> blocks_;  // by old value: as its readers want it
  Sliced result_;
  Graph& g_ = result_.graph;
  SlicedValues values_;
};

}  // namespace

int Slicing::grid_columns() const {
  int columns = slices;
  for (int c = slices; c * c >= slices; --c)
    if (slices % c == 0) columns = c;
  return columns;
}

Sliced slice(const Graph& forward, Slicing how, const Cuts& decided) {
  if (how.slices == 1) return {forward, {}, {}, {}};
  Slicer slicer(forward, how, decided);
  Sliced plain = slicer.run();
  if (!how.overlap) return plain;
  return Slicer(forward, how, decided, slicer.overlapping_rows()).run();
}

}  // namespace echelon
