// The parts of Net that work on sequences: embeddings, attention, recurrent layers.
#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/dropout.h"
#include "graph/ops/linear.h"
#include "graph/ops/lookup.h"
#include "nn/layers.h"

namespace echelon::nn {

Value Net::table(std::int64_t rows, std::int64_t width) {
  const auto scope = layer("embedding");
  if (rows < 1 || width < 1) refuse("embedding", fmt::format("cannot have a table of {} x {}", rows, width));
  return parameter("weight", {rows, width}, init_.value_or(normal(1)));
}

Value Net::embedding(Value ids, Value table) {
  const auto scope = layer("lookup");
  return ops::embedding(graph_, table, ids);
}

Value Net::embedding(Value ids, std::int64_t rows, std::int64_t width) {
  const auto scope = layer("embedding");
  if (rows < 1 || width < 1) refuse("embedding", fmt::format("cannot have a table of {} x {}", rows, width));
  return ops::embedding(graph_, parameter("weight", {rows, width}, init_.value_or(normal(1))), ids);
}

Value Net::scores(Value x, Value table) {
  const auto scope = layer("scores");
  return ops::linear(graph_, x, table, {});
}

Value Net::positions(Value x) {
  const auto scope = layer("positions");
  need_rank("positions", x, 3, "sequences [N, T, d]");
  const Value b = parameter("weight", {shape(x)[1], shape(x)[2]}, init_.value_or(Init::zeros()), false);
  return ops::add_tail(graph_, x, b);
}

Value Net::attention(Value x, const AttentionOptions& o) {
  const auto scope = layer("attention");
  need_rank("attention", x, 3, "sequences [N, T, d]");
  const std::int64_t width = shape(x)[2];
  if (o.heads < 1 || width % o.heads != 0)
    refuse("attention", fmt::format("{} heads do not divide the width of its input {}", o.heads, to_string(shape(x))));
  const Value qkv = named("qkv").linear(x, 3 * width, {.bias = o.bias});
  const Value mixed = ops::attention(graph_, qkv, o.heads, o.causal);
  return named("out").linear(mixed, width, {.bias = o.bias, .init = o.out_init});
}

Sequence Net::rnn(Value x, std::int64_t hidden, const RecurrentOptions& o) {
  return recurrent(o.relu ? ops::Cell::rnn_relu : ops::Cell::rnn_tanh, "rnn", x, hidden, o);
}

Sequence Net::lstm(Value x, std::int64_t hidden, const RecurrentOptions& o) {
  return recurrent(ops::Cell::lstm, "lstm", x, hidden, o);
}

Sequence Net::gru(Value x, std::int64_t hidden, const RecurrentOptions& o) {
  return recurrent(ops::Cell::gru, "gru", x, hidden, o);
}

Sequence Net::recurrent(ops::Cell cell, const std::string& kind, Value x, std::int64_t hidden,
                        const RecurrentOptions& o) {
  const auto scope = layer(kind);
  need_rank(kind, x, 3, "sequences [batch, time, features]");
  if (hidden < 1 || o.layers < 1)
    refuse(kind, fmt::format("cannot have {} layers of {} hidden units", o.layers, hidden));
  const std::int64_t rows = ops::gates(cell) * hidden, batch = shape(x)[0];
  // PyTorch draws all four from the hidden size, whatever the input's.
  auto init = [&](std::int64_t fan_in) {
    return o.init || init_ ? start(o.init, fan_in, hidden) : torch_default(hidden);
  };
  Sequence result{x, {}};
  for (int i = 0; i < o.layers; ++i) {
    auto name = [i](const char* what) { return fmt::format("{}_l{}", what, i); };
    const std::int64_t in = shape(result.all)[2];
    const ops::RecurrentWeights weights{.w_ih = parameter(name("weight_ih"), {rows, in}, init(in)),
                                        .w_hh = parameter(name("weight_hh"), {rows, hidden}, init(hidden)),
                                        .b_ih = parameter(name("bias_ih"), {rows}, bias_start(o.init, hidden), false),
                                        .b_hh = parameter(name("bias_hh"), {rows}, bias_start(o.init, hidden), false)};
    Value h0, c0;
    if (o.carry) {
      h0 = graph_.carry(graph_.layer() + "." + name("h"), f32({batch, hidden}));
      if (cell == ops::Cell::lstm) c0 = graph_.carry(graph_.layer() + "." + name("c"), f32({batch, hidden}));
    }
    const auto run = ops::recurrent(graph_, cell, result.all, weights, h0, c0);
    if (h0) graph_.carry_on(h0, run.h_last);
    if (c0) graph_.carry_on(c0, run.c_last);
    result = {run.y, run.h_last};
    if (i + 1 < o.layers && o.dropout > 0) result.all = named(name("dropout")).dropout(result.all, o.dropout);
  }
  return result;
}

}  // namespace echelon::nn
