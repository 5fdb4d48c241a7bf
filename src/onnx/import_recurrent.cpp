// Rows for recurrent layers. ONNX has time first and one dimension for the directions; PyTorch writes a node a layer.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "onnx/import_rows.h"

namespace echelon::onnx {
namespace {

using Kind = Known::Kind;

// Gates of one direction in PyTorch's order (ours) from ONNX's.
std::vector<float> gates_in_order(std::span<const float> rows, const std::vector<std::size_t>& order) {
  const std::size_t each = rows.size() / order.size();
  std::vector<float> out(rows.size());
  for (std::size_t theirs = 0; theirs < order.size(); ++theirs)
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(theirs * each), each,
                out.begin() + static_cast<std::ptrdiff_t>(order[theirs] * each));
  return out;
}

void check_start(NodeImport& n, std::size_t i) {
  if (!n.has(i)) return;
  if (!n.is_constant(i)) n.refuse("starts from a state that the network is given, which is not read");
  for (const float x : read_floats(n.constant(i)))
    if (x != 0) n.refuse("starts from a state that is not zero, which is not read");
}

void check_activations(NodeImport& n, bool plain) {
  const auto it = n.node().attributes.find("activations");
  if (it == n.node().attributes.end()) return;
  for (const std::string& a : it->second.texts)
    if (a != "Tanh" && (plain || a != "Sigmoid")) n.refuse(fmt::format("the activation {} is not read", a));
}

void recurrent_in(NodeImport& n) {
  const std::string& op = n.node().type;
  const bool lstm = op == "LSTM", gru = op == "GRU";
  const std::vector<std::size_t> order = lstm  ? std::vector<std::size_t>{0, 3, 1, 2}  // i, o, f, c -> i, f, g, o
                                         : gru ? std::vector<std::size_t>{1, 0, 2}     // z, r, h -> r, z, n
                                               : std::vector<std::size_t>{0};
  const std::string direction = n.text("direction", "forward");
  if (direction == "reverse") n.refuse("a layer that reads from the end only is not read");
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (gru && n.integer("linear_before_reset", 0) == 0) n.refuse("linear_before_reset = 0 is not PyTorch's GRU");
  if (n.integer("layout", 0) != 0) n.refuse("layout 1 is not read");
  if (n.has(4)) n.refuse("sequences of different lengths are not read");
  check_start(n, 5);
  if (lstm) check_start(n, 6);
  if (lstm && n.has(7)) n.refuse("peepholes are not read");
  check_activations(n, !lstm && !gru);

  Known x = n.in(0);
  if (!x.is(Kind::value) || x.rank() != 3 || x.order != std::vector<int>{1, 0, 2})
    n.refuse("needs sequences with the batch first (batch_first = True), turned for it");
  x.order.clear();
  x = n.settled(x);
  const Tensor &w = n.constant(1), &r = n.constant(2);
  const std::int64_t hidden = n.integer("hidden_size", 0), in = x.shape[2];
  const std::int64_t rows = static_cast<std::int64_t>(order.size()) * std::clamp<std::int64_t>(hidden, 0, 1 << 24);
  if (hidden < 1 || w.dims != Ints{directions, rows, in} || r.dims != Ints{directions, rows, hidden})
    n.refuse(fmt::format("weights [{}] and [{}] do not fit {} hidden units and {} inputs", fmt::join(w.dims, ", "),
                         fmt::join(r.dims, ", "), hidden, in));
  if (n.has(3) && n.constant(3).dims != Ints{directions, 2 * rows}) n.refuse("biases of another size");
  const Known y =
      n.import().layer(lstm  ? "lstm"
                       : gru ? "gru"
                             : "rnn",
                       n.module({}), {x}, {{"hidden", whole(hidden)}, {"bidirectional", yes_or_no(directions == 2)}});
  const std::vector<float> all_w = read_floats(w), all_r = read_floats(r),
                           all_b = n.has(3) ? read_floats(n.constant(3))
                                            : std::vector<float>(static_cast<std::size_t>(2 * rows * directions), 0);
  for (std::int64_t d = 0; d < directions; ++d) {
    const std::string suffix = d == 0 ? "_l0" : "_l0_reverse";
    const auto piece = [&](const std::vector<float>& from, std::int64_t first, std::int64_t count) {
      return gates_in_order(std::span(from).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                            order);
    };
    n.import().weight(y.layer, "weight_ih" + suffix, {rows, in}, piece(all_w, d * rows * in, rows * in));
    n.import().weight(y.layer, "weight_hh" + suffix, {rows, hidden}, piece(all_r, d * rows * hidden, rows * hidden));
    n.import().weight(y.layer, "bias_ih" + suffix, {rows}, piece(all_b, d * 2 * rows, rows));
    n.import().weight(y.layer, "bias_hh" + suffix, {rows}, piece(all_b, (d * 2 + 1) * rows, rows));
  }
  Known states = y;
  states.kind = Kind::states, states.directions = static_cast<int>(directions);
  n.out(states, 0);
  if (n.node().out.size() > 1 && !n.import().readers[n.node().out[1]].empty()) {
    // One direction: the state after the last step. Two: the second one ends at the first step; nobody may ask for it.
    Known last = y;
    if (directions == 1) {
      last = n.import().layer("slice", "", {y}, {{"axis", whole(1)}, {"begin", whole(-1)}, {"end", whole(y.shape[1])}});
      last = n.reshaped(last, {y.shape[0], hidden});
    }
    last.kind = Kind::last_states, last.directions = static_cast<int>(directions);
    n.out(last, 1);
  }
}

constexpr auto recurrent_table_in = std::to_array<ImportRow>({
    {"LSTM", recurrent_in},
    {"GRU", recurrent_in},
    {"RNN", recurrent_in},
});

}  // namespace

std::span<const ImportRow> recurrent_rows() { return recurrent_table_in; }

}  // namespace echelon::onnx
