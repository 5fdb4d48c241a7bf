// Rows for attention and recurrent layers.
#include <array>
#include <cmath>

#include "onnx/export_ops.h"

namespace echelon::onnx {
namespace {

// Queries, keys and values [N, time, width] -> [N, time, width], with heads beside each other.
std::string attend(NodeExport& e, const std::array<std::string, 3>& qkv, std::int64_t queries, std::int64_t keys,
                   std::int64_t width, std::int64_t heads, bool causal) {
  const std::int64_t d = width / heads;
  const auto in_heads = [&](const std::string& x, std::int64_t time, const Ints& axes) {
    return e.add("Transpose", {e.reshaped(x, Ints{0, time, heads, d})}, {{"perm", list(axes)}});
  };
  const std::string q = in_heads(qkv[0], queries, {0, 2, 1, 3}), k = in_heads(qkv[1], keys, {0, 2, 3, 1}),
                    v = in_heads(qkv[2], keys, {0, 2, 1, 3});
  std::string scores = e.add("Mul", {e.add("MatMul", {q, k}), e.constant(1 / std::sqrt(static_cast<float>(d)))});
  if (causal) {
    std::vector<float> mask(static_cast<std::size_t>(queries * keys), 0);
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = i + 1; j < keys; ++j) mask[static_cast<std::size_t>(i * keys + j)] = -1e30f;
    scores = e.add("Add", {scores, e.constant({queries, keys}, mask)});
  }
  const std::string y = e.add("MatMul", {e.add("Softmax", {scores}, {{"axis", integer(-1)}}), v});
  return e.reshaped(e.add("Transpose", {y}, {{"perm", list({0, 2, 1, 3})}}), Ints{0, queries, width});
}

void attention_onnx(NodeExport& e) {
  const std::int64_t time = e.shape(0)[1], width = e.shape(0)[2] / 3;
  const auto qkv = e.add_many("Split", {e.in(0), e.constant(Ints{width, width, width})}, 3, {{"axis", integer(2)}});
  e.result(attend(e, {qkv[0], qkv[1], qkv[2]}, time, time, width, e.whole("heads"), e.whole("causal") != 0));
}

void cross_attention_onnx(NodeExport& e) {
  const std::int64_t width = e.shape(0)[2];
  const auto kv = e.add_many("Split", {e.in(1), e.constant(Ints{width, width})}, 2, {{"axis", integer(2)}});
  e.result(attend(e, {e.in(0), kv[0], kv[1]}, e.shape(0)[1], e.shape(1)[1], width, e.whole("heads"), false));
}

// Scores [.., queries, keys] of positions that come later become so low that softmax gives them nothing.
void causal_mask_onnx(NodeExport& e) {
  const std::int64_t rows = e.shape(0)[-2], cols = e.shape(0)[-1];
  std::vector<float> mask(static_cast<std::size_t>(rows * cols), 0);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = i + 1; j < cols; ++j) mask[static_cast<std::size_t>(i * cols + j)] = -1e30f;
  e.result(e.add("Add", {e.in(0), e.constant({rows, cols}, mask)}));
}

// Rows of a gate matrix in another order of gates: PyTorch's (ours) -> ONNX's.
std::vector<float> in_order(const std::vector<float>& rows, const std::vector<std::size_t>& order) {
  const std::size_t each = rows.size() / order.size();
  std::vector<float> out;
  out.reserve(rows.size());
  for (const std::size_t gate : order)
    out.insert(out.end(), rows.begin() + static_cast<std::ptrdiff_t>(gate * each),
               rows.begin() + static_cast<std::ptrdiff_t>((gate + 1) * each));
  return out;
}

// x, w_ih, w_hh, b_ih, b_hh [, h0 [, c0]] -> y, h_last [, c_last]. ONNX has time first, and a dimension of directions.
void recurrent_onnx(NodeExport& e) {
  const std::string kind(e.op().name());
  const bool lstm = kind == "lstm", gru = kind == "gru";
  const std::vector<std::size_t> order = lstm  ? std::vector<std::size_t>{0, 3, 1, 2}  // i, f, g, o -> i, o, f, c
                                         : gru ? std::vector<std::size_t>{1, 0, 2}     // r, z, n -> z, r, h
                                               : std::vector<std::size_t>{0};
  const std::int64_t rows = e.shape(1)[0], in = e.shape(1)[1], hidden = e.shape(2)[1];
  std::vector<float> bias = in_order(e.parameter(3), order);
  const std::vector<float> second = in_order(e.parameter(4), order);
  bias.insert(bias.end(), second.begin(), second.end());
  std::vector<std::string> operands{e.add("Transpose", {e.in(0)}, {{"perm", list({1, 0, 2})}}),
                                    e.constant({1, rows, in}, in_order(e.parameter(1), order)),
                                    e.constant({1, rows, hidden}, in_order(e.parameter(2), order)),
                                    e.constant({1, 2 * rows}, bias)};
  const std::string first = e.constant(Ints{0});
  if (e.inputs() > 5) operands.push_back("");
  for (std::size_t i = 5; i < e.inputs(); ++i) operands.push_back(e.add("Unsqueeze", {e.in(i), first}));
  OnnxAttributes a{{"hidden_size", integer(hidden)}};
  if (gru) a["linear_before_reset"] = integer(1);
  if (kind == "rnn") a["activations"] = {.kind = Attribute::Kind::texts, .texts = {e.whole("relu") ? "Relu" : "Tanh"}};
  const auto out = e.add_many(lstm ? "LSTM" : gru ? "GRU" : "RNN", operands, lstm ? 3 : 2, a);
  e.result(e.add("Transpose", {e.add("Squeeze", {out[0], e.constant(Ints{1})})}, {{"perm", list({1, 0, 2})}}));
  e.result(e.add("Squeeze", {out[1], first}), 1);
  if (lstm) e.result(e.add("Squeeze", {out[2], first}), 2);
}

// One step of a cell: (from_x, from_h [, before]) -> h [, c].
void cell_onnx(NodeExport& e) {
  const std::string kind(e.op().name());
  const std::int64_t units = e.out_shape()[1];
  const auto parts = [&](const std::string& x, std::size_t n) {
    return e.add_many("Split", {x, e.constant(Ints(n, units))}, n, {{"axis", integer(1)}});
  };
  if (kind == "rnn_cell") return e.result(e.add(e.whole("relu") ? "Relu" : "Tanh", {e.add("Add", {e.in(0), e.in(1)})}));
  if (kind == "lstm_cell") {
    const auto gates = parts(e.add("Add", {e.in(0), e.in(1)}), 4);
    const std::string kept = e.add("Mul", {e.add("Sigmoid", {gates[1]}), e.in(2)}),
                      taken = e.add("Mul", {e.add("Sigmoid", {gates[0]}), e.add("Tanh", {gates[2]})});
    const std::string c = e.add("Add", {kept, taken});
    e.result(e.add("Mul", {e.add("Sigmoid", {gates[3]}), e.add("Tanh", {c})}));
    return e.result(c, 1);
  }
  const auto x = parts(e.in(0), 3), h = parts(e.in(1), 3);
  const std::string r = e.add("Sigmoid", {e.add("Add", {x[0], h[0]})}),
                    z = e.add("Sigmoid", {e.add("Add", {x[1], h[1]})});
  const std::string n = e.add("Tanh", {e.add("Add", {x[2], e.add("Mul", {r, h[2]})})});
  e.result(e.add("Add", {n, e.add("Mul", {z, e.add("Sub", {e.in(2), n})})}));
}

constexpr auto sequence_table = std::to_array<ExportRow>({
    {"attention", attention_onnx},
    {"cross_attention", cross_attention_onnx},
    {"causal_mask", causal_mask_onnx},
    {"lstm", recurrent_onnx},
    {"gru", recurrent_onnx},
    {"rnn", recurrent_onnx},
    {"lstm_cell", cell_onnx},
    {"gru_cell", cell_onnx},
    {"rnn_cell", cell_onnx},
});

}  // namespace

std::span<const ExportRow> sequence_rows() { return sequence_table; }

}  // namespace echelon::onnx
