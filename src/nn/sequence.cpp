// The parts of Net that work on sequences: embeddings, attention, recurrent layers.
#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/dropout.h"
#include "graph/ops/linear.h"
#include "graph/ops/lookup.h"
#include "graph/ops/permute.h"
#include "graph/ops/shape.h"
#include "graph/ops/strips.h"
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
  const std::int64_t length = decoding_ ? decoding_->room : shape(x)[1];
  const Value b = parameter("weight", {length, shape(x)[2]}, init_.value_or(Init::zeros()), false);
  return ops::add_tail(graph_, x, decoding_ ? ops::embedding(graph_, b, decoding_->position) : b);
}

Value Net::attention(Value x, const AttentionOptions& o) {
  const auto scope = layer("attention");
  need_rank("attention", x, 3, "sequences [N, T, d]");
  const std::int64_t width = shape(x)[2];
  if (o.heads < 1 || width % o.heads != 0)
    refuse("attention", fmt::format("{} heads do not divide the width of its input {}", o.heads, to_string(shape(x))));
  const Value qkv = named("qkv").linear(x, 3 * width, {.bias = o.bias});
  const Value mixed = decoding_ ? attend_before(qkv, o) : ops::attention(graph_, qkv, o.heads, o.causal);
  return named("out").linear(mixed, width, {.bias = o.bias, .init = o.out_init});
}

// The one position at hand, to itself and those before.
Value Net::attend_before(Value qkv, const AttentionOptions& o) {
  if (!o.causal) refuse_decoding("attention");
  const Shape cache{shape(qkv)[0], decoding_->room, shape(qkv)[2] / 3 * 2};
  const Value before = graph_.carry(graph_.layer() + ".cache", f32(cache));
  const ops::Attended attended = ops::cached_attention(graph_, qkv, before, decoding_->position, o.heads);
  graph_.carry_on(before, attended.cache);
  return attended.y;
}

Value Net::cross_attention(Value x, Value memory, const AttentionOptions& o) {
  const auto scope = layer("cross_attention");
  refuse_decoding("cross_attention");
  need_rank("cross_attention", x, 3, "sequences [N, T, d]");
  need_rank("cross_attention", memory, 3, "a second sequence [N, S, e]");
  const std::int64_t width = shape(x)[2];
  if (o.causal) refuse("cross_attention", "cannot be causal: its two sequences have times of their own");
  if (o.heads < 1 || width % o.heads != 0)
    refuse("cross_attention",
           fmt::format("{} heads do not divide the width of its input {}", o.heads, to_string(shape(x))));
  if (shape(x)[0] != shape(memory)[0])
    refuse("cross_attention",
           fmt::format("{} and {} are not of the same samples", to_string(shape(x)), to_string(shape(memory))));
  const Value q = named("q").linear(x, width, {.bias = o.bias});
  const Value kv = named("kv").linear(memory, 2 * width, {.bias = o.bias});
  const Value mixed = ops::cross_attention(graph_, q, kv, o.heads);
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

// One direction of one layer; the suffix is PyTorch's: "_l0", "_l0_reverse".
Sequence Net::recurrent_pass(ops::Cell cell, Value x, std::int64_t hidden, const RecurrentOptions& o,
                             const std::string& suffix) {
  // PyTorch draws all four from the hidden size, whatever the input's.
  auto init = [&](std::int64_t fan_in) {
    return o.init || init_ ? start(o.init, fan_in, hidden) : torch_default(hidden);
  };
  const std::int64_t rows = ops::gates(cell) * hidden, batch = shape(x)[0], in = shape(x)[2];
  const auto bias = [&](const std::string& name) {
    if (!o.bias) return ops::filled(graph_, {rows}, 0);
    return parameter(name, {rows}, bias_start(o.init, hidden), false);
  };
  const ops::RecurrentWeights weights{.w_ih = parameter("weight_ih" + suffix, {rows, in}, init(in)),
                                      .w_hh = parameter("weight_hh" + suffix, {rows, hidden}, init(hidden)),
                                      .b_ih = bias("bias_ih" + suffix),
                                      .b_hh = bias("bias_hh" + suffix)};
  Value h0, c0;
  if (o.carry) {
    h0 = graph_.carry(graph_.layer() + ".h" + suffix, f32({batch, hidden}));
    if (cell == ops::Cell::lstm) c0 = graph_.carry(graph_.layer() + ".c" + suffix, f32({batch, hidden}));
  }
  const auto run = ops::recurrent(graph_, cell, x, weights, h0, c0);
  if (h0) graph_.carry_on(h0, run.h_last);
  if (c0) graph_.carry_on(c0, run.c_last);
  return {run.y, run.h_last};
}

Sequence Net::recurrent(ops::Cell cell, const std::string& kind, Value x, std::int64_t hidden,
                        const RecurrentOptions& o) {
  const auto scope = layer(kind);
  if (!o.carry) refuse_decoding(kind);
  need_rank(kind, x, 3, "sequences [batch, time, features]");
  if (hidden < 1 || o.layers < 1)
    refuse(kind, fmt::format("cannot have {} layers of {} hidden units", o.layers, hidden));
  if (o.carry && o.bidirectional)
    refuse(kind, "cannot carry its state and be bidirectional: what follows is not known yet");
  Sequence result{x, {}};
  for (int i = 0; i < o.layers; ++i) {
    const std::string suffix = fmt::format("_l{}", i);
    const Value before = result.all;
    result = recurrent_pass(cell, before, hidden, o, suffix);
    if (o.bidirectional) {
      const Sequence back = recurrent_pass(cell, ops::reverse(graph_, before, 1), hidden, o, suffix + "_reverse");
      result = {ops::concat(graph_, {result.all, ops::reverse(graph_, back.all, 1)}, 2),
                ops::concat(graph_, {result.last, back.last}, 1)};
    }
    if (i + 1 < o.layers && o.dropout > 0)
      result.all = named(fmt::format("dropout_l{}", i)).dropout(result.all, o.dropout);
  }
  return result;
}

}  // namespace echelon::nn
