#include "plan/sequence.h"

#include <algorithm>
#include <map>

#include "graph/ops/elementwise.h"
#include "graph/ops/norm.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"
#include "plan/joins.h"

namespace echelon {

namespace {

constexpr std::int64_t rows_together = ops::layer_norm_rows_together;

class RowSpreader {
 public:
  RowSpreader(const Graph& graph, const StagePartition& partition, const PartCounts& counts)
      : old_(graph),
        counts_(counts),
        parts_(counts.parts),
        each_(slices_of(graph) / counts.parts),
        stage_of_(stages_of_nodes(graph, partition)),
        readers_(static_cast<std::size_t>(graph.values())),
        r_(graph) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      for (Value v : graph.nodes()[n].in)
        if (v) readers_[index(v)].push_back(n);
  }

  Graph run() {
    for (std::size_t n = 0; n < old_.nodes().size(); ++n) {
      const Node& node = old_.nodes()[n];
      g().set_layer(node.layer);
      g().set_backward(node.backward);
      if (may_be_cut(n) && sums_over_parts(old_, stage_of_, counts_, node, parts_) && somebody_takes_rows(node.out[0]))
        scatter(node);
      else if (takes_rows(n) && std::ranges::any_of(node.in, [&](Value v) { return rows_.contains(v.id); }))
        by_rows(node);
      else
        at_once(node);
      g().set_slice(-1);
    }
    add_up(true);
    for (const auto& [name, v] : old_.outputs()) whole(v);
    for (Value c : old_.contributions())
      if (c) whole(c);
    for (const auto& c : old_.carries()) whole(c.to);
    g().set_layer("");
    g().set_backward(false);
    return r_.finish();
  }

 private:
  using Parts = std::vector<Value>;  // by part: [rows, width]

  Graph& g() { return r_.graph(); }
  static std::size_t index(Value v) { return static_cast<std::size_t>(v.id); }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  void set_part(int part) { g().set_slice(part * each_); }

  std::int64_t rows_of(Value v) const { return old_.type(v).elements() / old_.type(v).shape[-1]; }
  // Where the rows of a part begin.
  std::int64_t first_row(std::int64_t rows, int part) const {
    return part == parts_ ? rows : rows / rows_together * part / parts_ * rows_together;
  }

  // On all parts of a stage, with enough rows for each.
  bool may_be_cut(std::size_t n) const {
    const Node& node = old_.nodes()[n];
    const Type& type = old_.type(node.out[0]);
    return node.slice < 0 && counts_.of(stage_of_[n]) == parts_ && !counts_.ways.contains(node.layer) &&
           type.dtype == DType::f32 && type.layout == Layout::plain && type.shape.rank() >= 2 &&
           rows_of(node.out[0]) >= rows_together * parts_;
  }

  bool takes_rows(std::size_t n) const {
    const Node& node = old_.nodes()[n];
    if (!may_be_cut(n)) return false;
    if (node.op->is_view()) return rows_of(node.in[0]) == rows_of(node.out[0]);
    // What a norm's parameters get is ready at the end: nothing but the update may wait for it.
    if (ops::is_layer_norm_grad(*node.op))
      return readers_[index(node.out[1])].empty() && readers_[index(node.out[2])].empty();
    return node.op->works_by_rows();
  }
  bool somebody_takes_rows(Value v) const {
    return std::ranges::any_of(readers_[index(v)], [&](std::size_t n) { return takes_rows(n); });
  }

  void at_once(const Node& node) {
    for (Value v : node.in)
      if (v) whole(v);
    r_.copy(node);
    for (Value v : node.out) g().set_layout(r_[v], old_.type(v).layout);
    g().set_layer(node.layer);
    g().set_backward(node.backward);
  }

  // All rows, on all parts.
  void whole(Value v) {
    if (r_[v]) return;
    const Parts& parts = rows_.at(v.id);
    g().set_slice(-1);
    r_.map(v, ops::reshape(g(), ops::concat(g(), parts, 0), old_.type(v).shape));
  }

  // Each part's rows. What is whole is on all parts, and each takes its own.
  const Parts& rows(Value v, std::int64_t count) {
    if (const auto it = rows_.find(v.id); it != rows_.end()) return it->second;
    Parts& parts = taken_[v.id];
    if (!parts.empty()) return parts;
    const Shape flat{count, old_.type(v).elements() / count};
    for (int q = 0; q < parts_; ++q) {
      set_part(q);
      parts.push_back(ops::slice(g(), ops::reshape(g(), r_[v], flat), 0, first_row(count, q), first_row(count, q + 1)));
    }
    return parts;
  }

  // A sum over slices, of which each part gets its rows.
  void scatter(const Node& node) {
    const std::int64_t count = rows_of(node.out[0]), width = old_.type(node.out[0]).shape[-1];
    for (Value v : node.in) whole(v);
    const std::vector<Value> addends = add_own_slices(r_, node, parts_);
    std::vector<std::int64_t> extents;
    for (int q = 0; q < parts_; ++q) extents.push_back(first_row(count, q + 1) - first_row(count, q));
    std::vector<Parts> pieces;  // by part that has them
    for (int q = 0; q < parts_; ++q) {
      set_part(q);
      pieces.push_back(ops::split(g(), ops::reshape(g(), addends[index(q)], {count, width}), 0, extents));
    }
    Parts& sums = rows_[node.out[0].id];
    for (int q = 0; q < parts_; ++q) {
      std::vector<Value> of_rows;
      for (const Parts& from : pieces) of_rows.push_back(from[index(q)]);
      set_part(q);
      sums.push_back(ops::tree_sum(g(), of_rows));
    }
  }

  void by_rows(const Node& node) {
    if (node.op->is_view()) {
      rows_[node.out[0].id] = rows_.at(node.in[0].id);
      return;
    }
    const std::int64_t count = rows_of(node.out[0]), width = old_.type(node.out[0]).shape[-1];
    std::vector<Parts> in;
    const bool norm = ops::is_layer_norm_grad(*node.op);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const Value v = node.in[i];
      const bool has_rows =
          rows_.contains(v.id) || (norm ? i != 1 : old_.type(v).shape == old_.type(node.out[0]).shape);
      in.push_back(has_rows ? rows(v, count) : Parts(index(parts_), r_[v]));
    }
    if (norm) return norm_grad(node, in);
    for (int q = 0; q < parts_; ++q) {
      std::vector<Value> of_part;
      for (const Parts& p : in) of_part.push_back(p[index(q)]);
      set_part(q);
      const auto op = node.op->for_rows_from(first_row(count, q) * width);
      const auto out = g().add(op ? op : node.op, of_part);
      for (std::size_t i = 0; i < out.size(); ++i) rows_[node.out[i].id].push_back(out[i]);
    }
  }

  // What a norm's scale and shift get, from part to part.
  struct ParameterSum {
    const Node* node;
    Parts x, mean, rstd, dy;
    int norm = 0, next = 0;  // the how manieth norm it is; the part that adds to it next
    ops::NormParameterGrads sum = {};
  };

  void norm_grad(const Node& node, const std::vector<Parts>& in) {
    for (int q = 0; q < parts_; ++q) {
      const auto at = index(q);
      set_part(q);
      rows_[node.out[0].id].push_back(
          ops::layer_norm_rows_grad(g(), in[0][at], in[1][at], in[2][at], in[3][at], in[4][at]));
    }
    sums_.push_back({&node, in[0], in[2], in[3], in[4], ++norms_});
    add_up(false);
  }

  // A part adds its rows when it has come to the norm that is as many further as there are parts before it and one.
  void add_up(bool all) {
    for (ParameterSum& s : sums_)
      for (; s.next < parts_ && (all || s.norm + s.next < norms_); ++s.next) {
        const auto at = index(s.next);
        g().set_layer(s.node->layer);
        g().set_backward(true);
        set_part(s.next);
        s.sum = ops::layer_norm_parameter_grads(g(), s.x[at], s.mean[at], s.rstd[at], s.dy[at], s.sum);
        if (s.next + 1 < parts_) continue;
        g().set_slice(-1);
        r_.map(s.node->out[1], ops::copy(g(), s.sum.gamma));
        r_.map(s.node->out[2], ops::copy(g(), s.sum.beta));
      }
    std::erase_if(sums_, [&](const ParameterSum& s) { return s.next == parts_; });
  }

  const Graph& old_;
  const PartCounts& counts_;
  const int parts_, each_;  // slices on each part
  const std::vector<int> stage_of_;
  std::vector<std::vector<std::size_t>> readers_;  // nodes, by value
  std::map<int, Parts> rows_, taken_;              // by value: made in parts; whole, and parts taken from it
  std::vector<ParameterSum> sums_;                 // under way
  int norms_ = 0;
  Rewriter r_;
};

}  // namespace

Graph spread_rows(const Graph& graph, const StagePartition& partition, const PartCounts& counts) {
  return counts.parts == 1 ? graph : RowSpreader(graph, partition, counts).run();
}

}  // namespace echelon
