#include "models/networks/graph_network.h"

#include <fmt/format.h>

#include "base/node_columns.h"
#include "graph/ops/batch_matmul.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/shape.h"

namespace echelon::models {

namespace {

struct GraphOptions {
  std::int64_t hidden = 16;
  float dropout = 0.5f;
  int heads = 8;
};

// The levels of a sample, each [samples, nodes, ...]: what the nodes know, and their places.
struct Levels {
  std::vector<Value> known, edge, mean, self, absent;
  std::size_t count() const { return known.size(); }
};

Value column_of(Graph& g, Value rows, std::int64_t at) { return ops::slice(g, rows, 2, at, at + 1); }

Levels read_levels(Graph& g, std::span<const Value> inputs) {
  Levels levels;
  for (const Value input : inputs) {
    const Shape s = g.type(input).shape;
    const Value rows = ops::reshape(g, input, {s[0], s.elements() / s[0] / s[-1], s[-1]});
    const std::int64_t features = s[-1] - node_columns;
    levels.known.push_back(ops::slice(g, rows, 2, 0, features));
    levels.edge.push_back(column_of(g, rows, features + edge_column));
    levels.mean.push_back(column_of(g, rows, features + mean_column));
    levels.self.push_back(column_of(g, rows, features + self_column));
    levels.absent.push_back(column_of(g, rows, features + absent_column));
  }
  return levels;
}

// A layer's weights are the same for all levels, so it sees them as one: f([samples, nodes of all, width]).
template <typename F>
std::vector<Value> on_all(nn::Net& net, const std::vector<Value>& levels, const F& f) {
  Graph& g = net.graph();
  const Value joined = f(levels.size() == 1 ? levels[0] : ops::concat(g, levels, 1));
  std::vector<Value> parts;
  std::int64_t at = 0;
  for (const Value level : levels) {
    const std::int64_t nodes = net.shape(level)[1];
    parts.push_back(levels.size() == 1 ? joined : ops::slice(g, joined, 1, at, at + nodes));
    at += nodes;
  }
  return parts;
}

// The sum over each node's neighbours, by their weights[samples, neighbours, 1] -> as `nodes` of them.
Value sum_of_neighbours(Graph& g, Value neighbours, Value weights, std::int64_t nodes) {
  const Shape s = g.type(neighbours).shape;
  const std::int64_t each = s[1] / nodes;
  const Value rows = ops::reshape(g, neighbours, {s[0] * nodes, each, s[2]});
  const Value by = ops::reshape(g, weights, {s[0] * nodes, 1, each});
  return ops::reshape(g, ops::batch_matmul(g, by, rows), {s[0], nodes, s[2]});
}

// x[samples, nodes, width] times a number for each node.
Value times(Graph& g, Value x, Value number) {
  const Shape s = g.type(x).shape;
  return ops::scale_rows(g, x, ops::reshape(g, number, {s[0], s[1]}));
}

Value dropped(nn::Net& net, Value x, float p) { return p > 0 ? net.dropout(x, p) : x; }

std::vector<Value> gcn_layer(nn::Net& net, const Levels& in, std::int64_t out, const GraphOptions& o) {
  Graph& g = net.graph();
  std::vector<Value> sums;
  for (std::size_t l = 0; l + 1 < in.count(); ++l) {
    const Value around = sum_of_neighbours(g, in.known[l + 1], in.edge[l + 1], net.shape(in.known[l])[1]);
    sums.push_back(ops::add(g, around, times(g, in.known[l], in.self[l])));
  }
  return on_all(net, sums, [&](Value x) { return net.named("weights").linear(dropped(net, x, o.dropout), out); });
}

std::vector<Value> sage_layer(nn::Net& net, const Levels& in, std::int64_t out, const GraphOptions& o) {
  Graph& g = net.graph();
  std::vector<Value> both;
  for (std::size_t l = 0; l + 1 < in.count(); ++l) {
    const Value around = sum_of_neighbours(g, in.known[l + 1], in.mean[l + 1], net.shape(in.known[l])[1]);
    both.push_back(ops::concat(g, {in.known[l], around}, 2));
  }
  return on_all(net, both, [&](Value x) { return net.named("weights").linear(dropped(net, x, o.dropout), out); });
}

// One head. e = leaky_relu(a y + b y') for a node's y and each neighbour's y', itself among them; softmax; sum.
std::vector<Value> gat_head(nn::Net& net, const Levels& in, std::int64_t out, const GraphOptions& o) {
  Graph& g = net.graph();
  const auto y = on_all(net, in.known, [&](Value x) {
    return net.named("weights").linear(dropped(net, x, o.dropout), out, {.bias = false});
  });
  const auto a = on_all(net, y, [&](Value x) { return net.named("asks").linear(x, 1, {.bias = false}); });
  const auto b = on_all(net, y, [&](Value x) { return net.named("answers").linear(x, 1, {.bias = false}); });
  std::vector<Value> result;
  for (std::size_t l = 0; l + 1 < in.count(); ++l) {
    const Shape s = net.shape(y[l]);
    const std::int64_t rows = s[0] * s[1], each = net.shape(y[l + 1])[1] / s[1];
    const auto of_all = [&](Value own, Value theirs, std::int64_t width) {  // [rows, 1 + each, width]
      return ops::concat(g, {ops::reshape(g, own, {rows, 1, width}), ops::reshape(g, theirs, {rows, each, width})}, 1);
    };
    const Value theirs = ops::reshape(g, of_all(b[l], b[l + 1], 1), {rows, 1 + each});
    const Value ones = ops::offset(g, ops::scale(g, theirs, 0), 1);
    const Value asked = ops::scale_rows(g, ones, ops::reshape(g, a[l], {rows}));
    const Value absent = ops::reshape(g, of_all(ops::scale(g, in.absent[l], 0), in.absent[l + 1], 1), {rows, 1 + each});
    const Value scores = ops::add(g, ops::leaky_relu(g, ops::add(g, asked, theirs), 0.2f), absent);
    const Value attention = dropped(net, net.softmax(scores), o.dropout);
    const Value sum =
        ops::batch_matmul(g, ops::reshape(g, attention, {rows, 1, 1 + each}), of_all(y[l], y[l + 1], s[2]));
    result.push_back(ops::reshape(g, sum, {s[0], s[1], s[2]}));
  }
  return result;
}

// Heads beside each other; the last layer takes their mean.
std::vector<Value> gat_layer(nn::Net& net, const Levels& in, std::int64_t out, const GraphOptions& o, bool last) {
  Graph& g = net.graph();
  std::vector<std::vector<Value>> heads;
  for (int h = 0; h < o.heads; ++h) {
    const auto scope = net.block(fmt::format("head{}", h));
    heads.push_back(gat_head(net, in, out, o));
  }
  std::vector<Value> levels;
  for (std::size_t l = 0; l < heads[0].size(); ++l) {
    std::vector<Value> beside;
    for (const auto& head : heads) beside.push_back(head[l]);
    if (!last) {
      levels.push_back(beside.size() == 1 ? beside[0] : ops::concat(g, beside, 2));
      continue;
    }
    levels.push_back(ops::scale(g, net.add(beside), 1.0f / static_cast<float>(o.heads)));
  }
  return levels;
}

enum class GraphNetwork { gcn, sage, gat };

template <GraphNetwork kind>
Value graph_network(nn::Net& net, std::span<const Value> inputs, std::int64_t classes, const GraphOptions& o) {
  Graph& g = net.graph();
  Levels now = read_levels(g, inputs);
  for (std::size_t layer = 1; layer < inputs.size(); ++layer) {
    const auto scope = net.block(fmt::format("layer{}", layer));
    const bool last = layer + 1 == inputs.size();
    const std::int64_t out = last ? classes : o.hidden;
    std::vector<Value> next;
    if constexpr (kind == GraphNetwork::gcn) next = gcn_layer(net, now, out, o);
    if constexpr (kind == GraphNetwork::sage) next = sage_layer(net, now, out, o);
    if constexpr (kind == GraphNetwork::gat) next = gat_layer(net, now, out, o, last);
    if (!last)
      for (Value& x : next) x = kind == GraphNetwork::gat ? net.elu(x) : net.relu(x);
    now.known = std::move(next);
  }
  return ops::reshape(g, now.known[0], {net.shape(now.known[0])[0], classes});
}

template <GraphNetwork kind>
std::unique_ptr<Model> make_graph_network(const char* name, OptionReader& options, const InputSpec& inputs) {
  GraphOptions o;
  o.hidden = options.integer("hidden", kind == GraphNetwork::gat ? 8 : 16, 1, 1 << 16);
  o.dropout = static_cast<float>(options.number("dropout", 0.5, 0, 0.999));
  if (kind == GraphNetwork::gat) o.heads = static_cast<int>(options.integer("heads", 8, 1, 256));
  const bool fits = inputs.inputs.size() > 1 && inputs.classes > 0 && inputs.inputs[0].name == "node" &&
                    inputs.inputs[0].type.shape.rank() == 1;
  if (!fits) {
    options.problem("name",
                    fmt::format("is {}, which tells the nodes of a graph apart: set data.kind = \"graph\"", name));
    return nullptr;
  }
  return classifier(name, options, inputs, [o, out = outputs_of(inputs)](nn::Net& net, std::span<const Value> x) {
    return Scores{graph_network<kind>(net, x, out, o), {}, 0};
  });
}

}  // namespace

std::unique_ptr<Model> make_gcn(OptionReader& options, const InputSpec& inputs) {
  return make_graph_network<GraphNetwork::gcn>("gcn", options, inputs);
}
std::unique_ptr<Model> make_sage(OptionReader& options, const InputSpec& inputs) {
  return make_graph_network<GraphNetwork::sage>("sage", options, inputs);
}
std::unique_ptr<Model> make_gat(OptionReader& options, const InputSpec& inputs) {
  return make_graph_network<GraphNetwork::gat>("gat", options, inputs);
}

}  // namespace echelon::models
