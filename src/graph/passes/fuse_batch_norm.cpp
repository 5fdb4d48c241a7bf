#include "graph/passes/fuse_batch_norm.h"

#include <map>
#include <optional>

#include "graph/ops/batch_norm.h"
#include "graph/ops/elementwise.h"

namespace echelon {

namespace {

using kernels::Ew;

bool is_single(const Node& node, Ew op) {
  const auto* program = ops::elementwise_program(*node.op);
  return program && program->size() == 1 && (*program)[0].op == op;
}

// relu(norm(x) [+ residual]): three nodes that become one.
struct Block {
  int norm = -1, sum = -1, relu = -1;
  Value residual;
  ops::BatchNormExtras extras() const { return {.relu = true, .residual = sum >= 0}; }
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), uses_(graph.use_counts()) {}

  // The block that ends in this ReLU, if there is one.
  std::optional<Block> block_of(int relu) const {
    const Node& node = graph_.nodes()[static_cast<std::size_t>(relu)];
    if (!is_single(node, Ew::relu)) return {};
    const Value x = node.in[0];
    if (graph_.slice_of(x) != node.slice) return {};
    if (lone_norm(x) >= 0) return Block{lone_norm(x), -1, relu, {}};
    const int sum = lone_producer(x);
    if (sum < 0 || !is_single(graph_.nodes()[static_cast<std::size_t>(sum)], Ew::add)) return {};
    // The later of the two norms: its gradient comes first, before anybody needs the residual's.
    const Value a = graph_.nodes()[static_cast<std::size_t>(sum)].in[0];
    const Value b = graph_.nodes()[static_cast<std::size_t>(sum)].in[1];
    const auto lone_norm_here = [&](Value v) { return graph_.slice_of(v) == node.slice ? lone_norm(v) : -1; };
    const int norm_a = lone_norm_here(a), norm_b = lone_norm_here(b);
    if (a == b || (norm_a < 0 && norm_b < 0)) return {};
    return norm_a > norm_b ? Block{norm_a, sum, relu, b} : Block{norm_b, sum, relu, a};
  }

 private:
  // The node that makes `v`, if nobody but one node reads it; -1 otherwise.
  int lone_producer(Value v) const {
    const ValueInfo& i = graph_.info(v);
    return i.source == ValueInfo::Source::node && uses_[static_cast<std::size_t>(v.id)] == 1 ? i.producer : -1;
  }
  int lone_norm(Value v) const {
    const int n = lone_producer(v);
    return n >= 0 && ops::is_plain_batch_norm(*graph_.nodes()[static_cast<std::size_t>(n)].op) ? n : -1;
  }
  const Graph& graph_;
  std::vector<int> uses_;
};

// The gradient node of a block's norm that reads the gradient of the block's ReLU and nothing in between.
struct GradientBlock {
  const Block* block;
  int relu_grad;
  Value dy;  // behind the ReLU
};

}  // namespace

Graph fuse_batch_norm(const Graph& graph) {
  const auto& nodes = graph.nodes();
  const Finder finder(graph);
  std::map<int, Block> by_relu;  // forward
  std::map<int, const Block*> by_norm;
  std::vector<bool> gone(nodes.size(), false);
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n)
    if (const auto block = finder.block_of(n)) {
      by_relu[n] = *block;
      by_norm[block->norm] = &by_relu[n];
      gone[static_cast<std::size_t>(block->norm)] = true;
      if (block->sum >= 0) gone[static_cast<std::size_t>(block->sum)] = true;
    }

  std::map<int, std::vector<int>> readers;  // of each value
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n)
    for (Value v : nodes[static_cast<std::size_t>(n)].in) readers[v.id].push_back(n);
  const auto uses = graph.use_counts();

  std::map<int, GradientBlock> by_grad;  // backward
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
    const Node& node = nodes[static_cast<std::size_t>(n)];
    if (!ops::is_plain_batch_norm_grad(*node.op)) continue;
    const int norm = graph.info(node.in[3]).producer;  // the saved mean tells which norm it belongs to
    const auto block = by_norm.find(norm);
    const Value masked = node.in[5];
    if (block == by_norm.end() || graph.info(masked).source != ValueInfo::Source::node) continue;
    const int relu_grad = graph.info(masked).producer;
    const Node& g = nodes[static_cast<std::size_t>(relu_grad)];
    if (!is_single(g, Ew::relu_grad) || g.in[0] != nodes[static_cast<std::size_t>(block->second->relu)].out[0])
      continue;
    const auto& all_readers = readers[masked.id];
    bool in_time = uses[static_cast<std::size_t>(masked.id)] == static_cast<int>(all_readers.size());
    for (int r : all_readers) in_time = in_time && r >= n;
    if (!in_time || (block->second->sum < 0 && all_readers.size() != 1)) continue;
    by_grad[n] = {block->second, relu_grad, g.in[1]};
    gone[static_cast<std::size_t>(relu_grad)] = true;
  }

  Rewriter r(graph);
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
    const Node& node = nodes[static_cast<std::size_t>(n)];
    if (gone[static_cast<std::size_t>(n)]) continue;
    if (const auto it = by_relu.find(n); it != by_relu.end()) {
      const Block& b = it->second;
      const Node& norm = nodes[static_cast<std::size_t>(b.norm)];
      std::vector<Value> in = r.mapped(norm.in);
      if (b.residual) in.push_back(r[b.residual]);
      const auto out = r.emit(norm, ops::batch_norm_with(*norm.op, b.extras()), in);
      r.map(node.out[0], out[0]);
    } else if (const auto git = by_grad.find(n); git != by_grad.end()) {
      const GradientBlock& b = git->second;
      std::vector<Value> in = r.mapped(node.in);
      in[5] = r[b.dy];
      if (b.block->residual) in.push_back(r[nodes[static_cast<std::size_t>(b.block->relu)].out[0]]);
      const auto out = r.emit(node, ops::batch_norm_grad_with(*node.op, b.block->extras()), in);
      if (b.block->residual) r.map(node.in[5], out[3]);
    } else {
      r.copy(node);
    }
  }
  return r.finish();
}

}  // namespace echelon
