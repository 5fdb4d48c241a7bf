#include "graph/passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>

#include "graph/ops/conv.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"

namespace echelon {

namespace {

using kernels::EwStep;
using Program = std::vector<EwStep>;

// An element-wise computation that has not been emitted yet: its program over values of the old graph.
struct Expression {
  Program program;
  std::vector<Value> in;
};

// Appends `part` to `whole` as a computation over whole.in; returns the operand index of part's result, counted as if
// whole.in were complete. Operand indices of steps are kept as (-1 - step) until finish() knows the input count.
class Joiner {
 public:
  int input(Value v) {
    const auto it = std::ranges::find(in_, v);
    if (it != in_.end()) return static_cast<int>(it - in_.begin());
    in_.push_back(v);
    return static_cast<int>(in_.size()) - 1;
  }
  // `operands[i]` is the index that input i of `part` has here.
  int append(const Program& part, const std::vector<int>& operands) {
    const int base = static_cast<int>(steps_.size()), inputs = static_cast<int>(operands.size());
    auto translate = [&](int index) {
      if (index < 0) return index;
      return index < inputs ? operands[static_cast<std::size_t>(index)] : step(base + index - inputs);
    };
    for (const EwStep& s : part) {
      steps_.push_back({s.op, static_cast<std::int16_t>(translate(s.a)),
                        static_cast<std::int16_t>(kernels::arity(s.op) > 1 ? translate(s.b) : 0), s.c});
    }
    return step(static_cast<int>(steps_.size()) - 1);
  }
  bool fits() const { return in_.size() <= kernels::max_ew_inputs && steps_.size() <= kernels::max_ew_steps; }
  Expression finish() const {
    Expression e{steps_, in_};
    const int inputs = static_cast<int>(in_.size());
    auto settle = [&](std::int16_t& index) {
      if (index < 0) index = static_cast<std::int16_t>(inputs + (-1 - index));
    };
    for (EwStep& s : e.program) settle(s.a), settle(s.b);
    return e;
  }

 private:
  static int step(int s) { return -1 - s; }
  Program steps_;
  std::vector<Value> in_;
};

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph), r_(graph), uses_(graph.use_counts()) {
    for (const Node& node : graph.nodes())
      for (Value v : node.in) reader_[v.id] = &node;
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (absorbed(node)) continue;
      if (ops::elementwise_program(*node.op)) {
        visit_elementwise(node);
      } else {
        for (Value v : node.in) settle(v);
        if (auto op = with_relu(node))
          r_.map(reader_[node.out[0].id]->out[0], r_.emit(node, op, r_.mapped(node.in))[0]);
        else
          r_.copy(node);
      }
    }
    return r_.finish();
  }

 private:
  const Node* only_reader(Value v) const {
    const auto it = reader_.find(v.id);
    return uses_[static_cast<std::size_t>(v.id)] == 1 && it != reader_.end() ? it->second : nullptr;
  }
  static bool is_relu(const Node& node) {
    const Program* p = ops::elementwise_program(*node.op);
    return p && p->size() == 1 && (*p)[0].op == kernels::Ew::relu;
  }
  // The op of `node` with the ReLU that alone reads its result, or null.
  std::shared_ptr<const Op> with_relu(const Node& node) const {
    const Node* reader = only_reader(node.out[0]);
    if (!reader || !is_relu(*reader) || reader->slice != node.slice) return nullptr;
    if (auto op = ops::conv2d_with_relu(*node.op)) return op;
    return ops::linear_with_relu(*node.op);
  }
  // Whether this ReLU has been computed by the node that feeds it.
  bool absorbed(const Node& node) const { return is_relu(node) && r_[node.out[0]]; }

  // A chain may grow through `v` if another element-wise node of the same slice is the only one to read it.
  bool may_wait(Value v) const {
    const Node* reader = only_reader(v);
    return reader && ops::elementwise_program(*reader->op) && reader->slice == graph_.slice_of(v);
  }

  void visit_elementwise(const Node& node) {
    Expression joined = join(node, true);
    if (joined.program.empty()) joined = join(node, false);
    for (Value v : node.in) pending_.erase(v.id);
    pending_[node.out[0].id] = {&node, std::move(joined)};
    if (!may_wait(node.out[0])) settle(node.out[0]);
  }

  // The node's program with the pending programs of its inputs in front. Empty if that would be too long.
  Expression join(const Node& node, bool absorb) {
    Joiner joiner;
    std::vector<int> operands;
    for (Value v : node.in) {
      const auto it = pending_.find(v.id);
      if (it == pending_.end() || !absorb) {
        settle(v);
        operands.push_back(joiner.input(v));
        continue;
      }
      const Expression& e = it->second.expression;
      std::vector<int> inner;
      for (Value in : e.in) inner.push_back(joiner.input(in));
      operands.push_back(joiner.append(e.program, inner));
    }
    joiner.append(*ops::elementwise_program(*node.op), operands);
    return joiner.fits() ? joiner.finish() : Expression{};
  }

  // Emits the pending computation of `v`, if there is one.
  void settle(Value v) {
    const auto it = pending_.find(v.id);
    if (it == pending_.end()) return;
    const Pending p = std::move(it->second);
    pending_.erase(it);
    r_.emit(*p.node, ops::elementwise_op(p.expression.program), r_.mapped(p.expression.in));
  }

  struct Pending {
    const Node* node;
    Expression expression;
  };
  const Graph& graph_;
  Rewriter r_;
  std::vector<int> uses_;
  std::map<int, const Node*> reader_;  // of values with one reader, that one
  std::map<int, Pending> pending_;
};

}  // namespace

Graph fuse(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace echelon
