#include "models/networks/gpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace echelon::models {

Value gpt(nn::Net& outer, Value tokens, std::int64_t vocabulary, const GptOptions& o) {
  nn::Net net = outer;
  net.use_init(nn::normal(0.02f));
  const Init joining = nn::normal(0.02f / std::sqrt(2.0f * static_cast<float>(o.layers)));
  auto drop = [&](Value v) { return o.dropout > 0 ? net.dropout(v, o.dropout) : v; };

  const Value table = net.named("tok").table(vocabulary, o.width);
  Value x = drop(net.named("pos").positions(net.embedding(tokens, table)));
  for (int i = 0; i < o.layers; ++i) {
    const auto scope = net.block(fmt::format("block{}", i));
    x = net.residual(x, [&](Value v) {
      v = net.named("norm1").layer_norm(v);
      return drop(net.attention(v, {.heads = o.heads, .causal = true, .out_init = joining}));
    });
    x = net.residual(x, [&](Value v) {
      v = net.named("norm2").layer_norm(v);
      if (o.experts > 0)
        return drop(net.moe(v, {.experts = o.experts,
                                .top = o.experts_per_token,
                                .capacity = o.capacity,
                                .balance = o.balance,
                                .out_init = joining}));
      v = net.named("up").linear(v, 4 * o.width);
      return drop(net.named("down").linear(net.gelu(v), o.width, {.init = joining}));
    });
  }
  x = net.named("norm").layer_norm(x);
  return o.tied ? net.named("head").scores(x, table) : net.named("head").linear(x, vocabulary, {.bias = false});
}

std::unique_ptr<Model> make_gpt(OptionReader& options, const InputSpec& inputs) {
  GptOptions o{.width = options.integer("width", 256, 1, 1 << 16),
               .heads = static_cast<int>(options.integer("heads", 4, 1, 1024)),
               .layers = static_cast<int>(options.integer("layers", 4, 1, 1024)),
               .tied = options.flag("tied", false),
               .dropout = static_cast<float>(options.number("dropout", 0, 0, 0.999))};
  o.experts = static_cast<int>(options.integer("experts", 0, 0, 4096));
  if (o.experts > 0) {
    o.experts_per_token = static_cast<int>(options.integer("experts_per_token", std::min(2, o.experts), 1, 2));
    o.capacity = static_cast<float>(options.number("capacity", 1.25, 1e-3, 1e3));
    o.balance = static_cast<float>(options.number("balance", 0.01, 0, 1e3));
    if (o.experts_per_token > o.experts)
      options.problem("experts_per_token",
                      fmt::format("is {}, but there is {} expert", o.experts_per_token, o.experts));
  }
  if (o.width % o.heads != 0)
    options.problem("heads", fmt::format("is {}, which does not divide the width {}", o.heads, o.width));
  return language_model("gpt", options, inputs, false, [o, vocabulary = inputs.classes](nn::Net& net, Value tokens) {
    return gpt(net, tokens, vocabulary, o);
  });
}

}  // namespace echelon::models
