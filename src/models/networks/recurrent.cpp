#include "models/networks/recurrent.h"

#include <fmt/format.h>

#include "graph/ops/shape.h"

namespace echelon::models {
namespace {

const char* name_of(Cell cell) { return cell == Cell::rnn ? "rnn" : cell == Cell::lstm ? "lstm" : "gru"; }

nn::Sequence run(nn::Net& net, Value x, const RecurrentOptions& o, bool carry) {
  const nn::RecurrentOptions options{.layers = o.layers, .dropout = o.dropout, .carry = carry};
  nn::Net cell = net.named("cell");
  if (o.cell == Cell::rnn) return cell.rnn(x, o.hidden, options);
  return o.cell == Cell::lstm ? cell.lstm(x, o.hidden, options) : cell.gru(x, o.hidden, options);
}

// [N, C, H, W] as a sequence of H rows, the channels of a row beside each other: [N, H, C * W].
Value rows(nn::Net& net, Value x) {
  const Shape s = net.shape(x);
  std::vector<Value> channels;
  for (std::int64_t c = 0; c < s[1]; ++c)
    channels.push_back(net.reshape(ops::slice(net.graph(), x, 1, c, c + 1), {s[2], s[3]}));
  return s[1] == 1 ? channels[0] : net.concat(channels, 2);
}

RecurrentOptions read(Cell cell, OptionReader& options, bool tokens) {
  return {.cell = cell,
          .hidden = options.integer("hidden", 256, 1, 1 << 16),
          .layers = static_cast<int>(options.integer("layers", 1, 1, 64)),
          .embedding = tokens ? options.integer("embedding", 64, 1, 1 << 16) : 0,
          .dropout = static_cast<float>(options.number("dropout", 0, 0, 0.999))};
}

}  // namespace

Value recurrent_classifier(nn::Net& net, Value x, std::int64_t classes, std::int64_t vocabulary,
                           const RecurrentOptions& o) {
  if (net.graph().type(x).dtype == DType::i32) x = net.named("embedding").embedding(x, vocabulary, o.embedding);
  if (net.shape(x).rank() == 4) x = rows(net, x);
  return net.named("out").linear(run(net, x, o, false).last, classes);
}

Value char_rnn(nn::Net& net, Value tokens, std::int64_t vocabulary, const RecurrentOptions& o) {
  Value x = net.named("embedding").embedding(tokens, vocabulary, o.embedding);
  x = run(net, x, o, true).all;
  if (o.dropout > 0) x = net.dropout(x, o.dropout);
  return net.named("out").linear(x, vocabulary);
}

std::unique_ptr<Model> make_recurrent_classifier(Cell cell, OptionReader& options, const InputSpec& inputs) {
  const bool tokens = inputs.input().type.dtype == DType::i32;
  const RecurrentOptions o = read(cell, options, tokens);
  const std::int64_t vocabulary = tokens ? options.integer("vocabulary", 256, 1, 1 << 24) : 0;
  return classifier(name_of(cell), options, inputs, [=, out = outputs_of(inputs)](nn::Net& net, Value x) {
    return recurrent_classifier(net, x, out, vocabulary, o);
  });
}

std::unique_ptr<Model> make_char_rnn(Cell cell, OptionReader& options, const InputSpec& inputs) {
  const RecurrentOptions o = read(cell, options, true);
  return language_model(
      fmt::format("char_{}", name_of(cell)), options, inputs, true,
      [o, vocabulary = inputs.classes](nn::Net& net, Value tokens) { return char_rnn(net, tokens, vocabulary, o); });
}

}  // namespace echelon::models
