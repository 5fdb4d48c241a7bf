// The kinds of layers that a recipe can name: their keys, and how each is read.
#include <array>

#include "base/error.h"
#include "graph/ops/batch_matmul.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/permute.h"
#include "graph/ops/shape.h"
#include "nn/layer_table.h"

namespace echelon::nn {
namespace {

using In = std::span<const Value>;
constexpr std::int64_t huge = 1 << 24;

int small(OptionReader& o, const std::string& key, int fallback, int least = 1, int most = 1 << 20) {
  return static_cast<int>(o.integer(key, fallback, least, most));
}
float real(OptionReader& o, const std::string& key, double fallback, double least = -1e30, double most = 1e30) {
  return static_cast<float>(o.number(key, fallback, least, most));
}
std::int64_t size(OptionReader& o, const std::string& key, std::string_view why) {
  return o.require(key, why) ? o.integer(key, 1, 1, huge) : 1;
}

// One number, or [height, width].
Size2 pair(OptionReader& o, const std::string& key, int fallback, int least = 1) {
  const auto v = o.integers(key, {fallback}, least, 1 << 20);
  if (v.size() == 1) return {static_cast<int>(v[0])};
  if (v.size() == 2) return {static_cast<int>(v[0]), static_cast<int>(v[1])};
  o.problem(key, "must be one number or [height, width]");
  return fallback;
}

std::optional<Init> start(OptionReader& o) {
  const auto names = init_names();
  const std::string name = o.choice("init", "", {names.begin(), names.end()});
  const float value = real(o, "init_value", 1);
  if (name.empty()) return {};
  return init_by_name(name, value);
}

LinearOptions linear_options(OptionReader& o) {
  return {.bias = o.flag("bias", true), .weight_norm = o.flag("weight_norm", false), .init = start(o)};
}

Conv2dOptions conv_options(OptionReader& o, bool depthwise) {
  return {.kernel = pair(o, "kernel", 3),
          .stride = pair(o, "stride", 1),
          .padding = pair(o, "padding", 0, 0),
          .dilation = pair(o, "dilation", 1),
          .groups = depthwise ? 1 : small(o, "groups", 1),
          .bias = o.flag("bias", true),
          .weight_norm = o.flag("weight_norm", false),
          .init = start(o)};
}

template <Value (Net::*pool)(Value, Size2, const PoolOptions&)>
BuildLayer read_pool(OptionReader& o) {
  const Size2 kernel = pair(o, "kernel", 2);
  PoolOptions options{.padding = pair(o, "padding", 0, 0), .count_padding = o.flag("count_padding", true)};
  if (o.has("stride")) options.stride = pair(o, "stride", 1);
  return [=](Net& net, In x) { return (net.*pool)(x[0], kernel, options); };
}

template <Sequence (Net::*cell)(Value, std::int64_t, const RecurrentOptions&)>
BuildLayer read_recurrent(OptionReader& o) {
  const std::int64_t hidden = size(o, "hidden", "how many hidden units?");
  RecurrentOptions options{.layers = small(o, "layers", 1, 1, 256),
                           .dropout = real(o, "dropout", 0, 0, 0.999),
                           .carry = o.flag("carry", false),
                           .init = start(o)};
  options.bidirectional = o.flag("bidirectional", false);
  options.bias = o.flag("bias", true);
  const bool last = o.choice("output", "all", {"all", "last"}) == "last";
  return [=](Net& net, In x) {
    const Sequence s = (net.*cell)(x[0], hidden, options);
    return last ? s.last : s.all;
  };
}

// A layer without options.
template <Value (Net::*layer)(Value)>
BuildLayer plain(OptionReader&) {
  return [](Net& net, In x) { return (net.*layer)(x[0]); };
}

BuildLayer read_linear(OptionReader& o) {
  const std::int64_t out = size(o, "out", "how many outputs?");
  return [out, options = linear_options(o)](Net& net, In x) { return net.linear(x[0], out, options); };
}

BuildLayer read_conv2d(OptionReader& o) {
  const std::int64_t out = size(o, "out", "how many output channels?");
  return [out, options = conv_options(o, false)](Net& net, In x) { return net.conv2d(x[0], out, options); };
}

BuildLayer read_depthwise(OptionReader& o) {
  return [options = conv_options(o, true)](Net& net, In x) { return net.depthwise(x[0], options); };
}

BuildLayer read_conv1d(OptionReader& o) {
  const std::int64_t out = size(o, "out", "how many output channels?");
  const Conv1dOptions options{.kernel = small(o, "kernel", 3),
                              .stride = small(o, "stride", 1),
                              .padding = small(o, "padding", 0, 0),
                              .dilation = small(o, "dilation", 1),
                              .groups = small(o, "groups", 1),
                              .bias = o.flag("bias", true),
                              .init = start(o)};
  return [=](Net& net, In x) { return net.conv1d(x[0], out, options); };
}

BuildLayer read_conv_transpose2d(OptionReader& o) {
  const std::int64_t out = size(o, "out", "how many output channels?");
  const ConvTransposeOptions options{.kernel = pair(o, "kernel", 3),
                                     .stride = pair(o, "stride", 1),
                                     .padding = pair(o, "padding", 0, 0),
                                     .output_padding = pair(o, "output_padding", 0, 0),
                                     .dilation = pair(o, "dilation", 1),
                                     .groups = small(o, "groups", 1),
                                     .bias = o.flag("bias", true),
                                     .init = start(o)};
  return [=](Net& net, In x) { return net.conv_transpose2d(x[0], out, options); };
}

BuildLayer read_locally_connected(OptionReader& o) {
  const std::int64_t out = size(o, "out", "how many output channels?");
  const Conv2dOptions options{.kernel = pair(o, "kernel", 3),
                              .stride = pair(o, "stride", 1),
                              .padding = pair(o, "padding", 0, 0),
                              .bias = o.flag("bias", true),
                              .init = start(o)};
  return [=](Net& net, In x) { return net.locally_connected(x[0], out, options); };
}

BuildLayer read_group_norm(OptionReader& o) {
  const int groups = static_cast<int>(size(o, "groups", "how many groups of channels?"));
  return [groups, eps = real(o, "eps", 1e-5, 0)](Net& net, In x) { return net.group_norm(x[0], groups, eps); };
}

BuildLayer read_embedding(OptionReader& o) {
  const std::int64_t rows = size(o, "rows", "how many different ids are there?");
  const std::int64_t width = size(o, "width", "how many features for each id?");
  return [=](Net& net, In x) { return net.embedding(x[0], rows, width); };
}

BuildLayer read_attention(OptionReader& o) {
  const AttentionOptions options{
      .heads = small(o, "heads", 1), .causal = o.flag("causal", false), .bias = o.flag("bias", true)};
  return [=](Net& net, In x) { return net.attention(x[0], options); };
}

BuildLayer read_moe(OptionReader& o) {
  const MoeOptions options{.experts = small(o, "experts", 8, 1, 4096),
                           .hidden = o.integer("hidden", 0, 0, std::int64_t{1} << 32),
                           .top = small(o, "top", 2, 1, 2),
                           .capacity = real(o, "capacity", 1.25, 1e-3, 1e3),
                           .balance = real(o, "balance", 0.01, 0, 1e3),
                           .init = start(o)};
  if (options.top > options.experts)
    o.problem("top", fmt::format("= {} is more than the {} experts", options.top, options.experts));
  return [=](Net& net, In x) { return net.moe(x[0], options); };
}

BuildLayer read_cross_attention(OptionReader& o) {
  const AttentionOptions options{.heads = small(o, "heads", 1), .bias = o.flag("bias", true)};
  return [=](Net& net, In x) { return net.cross_attention(x[0], x[1], options); };
}

BuildLayer read_batch_norm(OptionReader& o) {
  const BatchNormOptions options{.eps = real(o, "eps", 1e-5, 0), .rate = real(o, "rate", 0.1, 0, 1)};
  return [=](Net& net, In x) { return net.batch_norm(x[0], options); };
}

BuildLayer read_layer_norm(OptionReader& o) {
  return [eps = real(o, "eps", 1e-5, 0)](Net& net, In x) { return net.layer_norm(x[0], eps); };
}

BuildLayer read_response_norm(OptionReader& o) {
  const ResponseNormOptions options{.size = small(o, "size", 5),
                                    .alpha = real(o, "alpha", 1e-4),
                                    .beta = real(o, "beta", 0.75),
                                    .k = real(o, "k", 1)};
  return [=](Net& net, In x) { return net.local_response_norm(x[0], options); };
}

BuildLayer read_dropout(OptionReader& o) {
  return [p = real(o, "p", 0.5, 0, 0.999)](Net& net, In x) { return net.dropout(x[0], p); };
}

BuildLayer read_leaky_relu(OptionReader& o) {
  return [slope = real(o, "slope", 0.01)](Net& net, In x) { return net.leaky_relu(x[0], slope); };
}

BuildLayer read_elu(OptionReader& o) {
  return [alpha = real(o, "alpha", 1)](Net& net, In x) { return net.elu(x[0], alpha); };
}

BuildLayer read_upsample(OptionReader& o) {
  return [factor = small(o, "factor", 2, 1, 256)](Net& net, In x) { return net.upsample(x[0], factor); };
}

BuildLayer read_reshape(OptionReader& o) {
  auto shape = o.integers("shape", {-1}, -1, huge);
  if (o.require("shape", "which shape, without the batch?") && (shape.empty() || shape.size() >= Shape::max_rank)) {
    o.problem("shape", "must have from one to five numbers");
    shape = {-1};
  }
  return [shape](Net& net, In x) { return net.reshape(x[0], Shape(shape)); };
}

BuildLayer read_concat(OptionReader& o) {
  return [axis = small(o, "axis", 1, 1, Shape::max_rank - 1)](Net& net, In x) {
    return net.concat({x.begin(), x.end()}, axis);
  };
}

BuildLayer read_add(OptionReader&) {
  return [](Net& net, In x) { return net.add({x.begin(), x.end()}); };
}

BuildLayer read_multiply(OptionReader&) {
  return [](Net& net, In x) { return net.multiply({x.begin(), x.end()}); };
}

// --- what networks from elsewhere are made of (onnx/import.h) ---
BuildLayer read_scale(OptionReader& o) {
  return [factor = real(o, "factor", 1), offset = real(o, "offset", 0)](Net& net, In x) {
    const auto scope = net.block("scale");
    Value y = x[0];
    if (factor != 1) y = ops::scale(net.graph(), y, factor);
    return offset == 0 ? y : ops::offset(net.graph(), y, offset);
  };
}

// Both ends are ReLUs, which have gradients: least + relu(x - least), and most - relu(most - x).
BuildLayer read_clip(OptionReader& o) {
  return [least = real(o, "least", -1e30), most = real(o, "most", 1e30)](Net& net, In x) {
    const auto scope = net.block("clip");
    Graph& g = net.graph();
    Value y = x[0];
    if (least > -1e30f) y = ops::offset(g, ops::relu(g, ops::offset(g, y, -least)), least);
    if (most < 1e30f)
      y = ops::offset(g, ops::scale(g, ops::relu(g, ops::offset(g, ops::scale(g, y, -1), most)), -1), most);
    return y;
  };
}

BuildLayer read_slice(OptionReader& o) {
  const int axis = small(o, "axis", 1, 1, Shape::max_rank - 1);
  const std::int64_t begin = o.integer("begin", 0, -huge, huge), end = o.integer("end", huge, -huge, huge);
  return [=](Net& net, In x) {
    const auto scope = net.block("slice");
    if (axis >= net.shape(x[0]).rank()) bad_input("layer 'slice': {} has no axis {}", to_string(net.shape(x[0])), axis);
    const std::int64_t extent = net.shape(x[0])[axis];
    const auto from_start = [&](std::int64_t i) { return std::min(i < 0 ? i + extent : i, extent); };
    return ops::slice(net.graph(), x[0], axis, from_start(begin), from_start(end));
  };
}

BuildLayer read_permute(OptionReader& o) {
  const auto stated = o.integers("axes", {1}, 1, Shape::max_rank - 1);
  o.require("axes", "in which order do the dimensions come? The batch, 0, stays the first");
  std::vector<int> axes{0};
  for (const std::int64_t a : stated) axes.push_back(static_cast<int>(a));
  return [axes](Net& net, In x) {
    const auto scope = net.block("permute");
    return ops::permute(net.graph(), x[0], axes);
  };
}

BuildLayer read_matmul(OptionReader& o) {
  return [turned = o.flag("transpose", false)](Net& net, In x) {
    const auto scope = net.block("matmul");
    return ops::batch_matmul(net.graph(), x[0], x[1], false, turned);
  };
}

BuildLayer read_causal_mask(OptionReader&) {
  return [](Net& net, In x) {
    const auto scope = net.block("causal_mask");
    return ops::causal_mask(net.graph(), x[0]);
  };
}

constexpr std::string_view conv_keys =
    "kernel = 3, stride = 1, padding = 0, dilation = 1, bias = true, weight_norm = false, init, init_value = 1";
constexpr std::string_view pool_keys = "kernel = 2, stride = kernel, padding = 0, count_padding = true";
constexpr std::string_view cell_keys =
    "hidden, layers = 1, dropout = 0, carry = false, bidirectional = false, bias = true, output = \"all\", init";
constexpr int many = 1000;

// The table. Name, keys, fewest and most inputs, how to read it.
constexpr auto table = std::to_array<LayerKind>({
    {"linear", "out, bias = true, weight_norm = false, init, init_value = 1", 1, 1, read_linear},
    {"conv2d", "out, groups = 1, kernel = 3, stride = 1, padding = 0, dilation = 1, bias = true, weight_norm, init", 1,
     1, read_conv2d},
    {"depthwise", conv_keys, 1, 1, read_depthwise},
    {"conv1d", "out, groups = 1, kernel = 3, stride = 1, padding = 0, dilation = 1, bias = true, init", 1, 1,
     read_conv1d},
    {"conv_transpose2d",
     "out, groups = 1, kernel = 3, stride = 1, padding = 0, output_padding = 0, dilation = 1, bias = true, init", 1, 1,
     read_conv_transpose2d},
    {"locally_connected", "out, kernel = 3, stride = 1, padding = 0, bias = true, init", 1, 1, read_locally_connected},
    {"max_pool", pool_keys, 1, 1, read_pool<&Net::max_pool>},
    {"avg_pool", pool_keys, 1, 1, read_pool<&Net::avg_pool>},
    {"global_avg_pool", "", 1, 1, plain<&Net::global_avg_pool>},
    {"batch_norm", "eps = 1e-5, rate = 0.1", 1, 1, read_batch_norm},
    {"layer_norm", "eps = 1e-5", 1, 1, read_layer_norm},
    {"group_norm", "groups, eps = 1e-5", 1, 1, read_group_norm},
    {"local_response_norm", "size = 5, alpha = 1e-4, beta = 0.75, k = 1", 1, 1, read_response_norm},
    {"dropout", "p = 0.5", 1, 1, read_dropout},
    {"embedding", "rows, width", 1, 1, read_embedding},
    {"positions", "", 1, 1, plain<&Net::positions>},
    {"attention", "heads = 1, causal = false, bias = true", 1, 1, read_attention},
    {"moe", "experts = 8, hidden = 4 * width, top = 2, capacity = 1.25, balance = 0.01, init", 1, 1, read_moe},
    {"cross_attention", "heads = 1, bias = true; inputs = [queries, memory]", 2, 2, read_cross_attention},
    {"rnn", cell_keys, 1, 1, read_recurrent<&Net::rnn>},
    {"lstm", cell_keys, 1, 1, read_recurrent<&Net::lstm>},
    {"gru", cell_keys, 1, 1, read_recurrent<&Net::gru>},
    {"add", "", 2, many, read_add},
    {"multiply", "", 2, many, read_multiply},
    {"concat", "axis = 1", 2, many, read_concat},
    {"flatten", "", 1, 1, plain<&Net::flatten>},
    {"reshape", "shape (without the batch)", 1, 1, read_reshape},
    {"transpose", "", 1, 1, plain<&Net::transpose>},
    {"upsample", "factor = 2", 1, 1, read_upsample},
    {"relu", "", 1, 1, plain<&Net::relu>},
    {"leaky_relu", "slope = 0.01", 1, 1, read_leaky_relu},
    {"gelu", "", 1, 1, plain<&Net::gelu>},
    {"silu", "", 1, 1, plain<&Net::silu>},
    {"sigmoid", "", 1, 1, plain<&Net::sigmoid>},
    {"tanh", "", 1, 1, plain<&Net::tanh>},
    {"softplus", "", 1, 1, plain<&Net::softplus>},
    {"elu", "alpha = 1", 1, 1, read_elu},
    {"softmax", "", 1, 1, plain<&Net::softmax>},
    {"scale", "factor = 1, offset = 0", 1, 1, read_scale},
    {"clip", "least, most", 1, 1, read_clip},
    {"slice", "axis = 1, begin = 0, end (of the axis)", 1, 1, read_slice},
    {"permute", "axes (of the dimensions behind the batch, counted from 1)", 1, 1, read_permute},
    {"matmul", "transpose = false; inputs = [a, b], matrices in the last two dimensions", 2, 2, read_matmul},
    {"causal_mask", "(scores [.., queries, keys]: no query sees a later key)", 1, 1, read_causal_mask},
});

}  // namespace

std::span<const LayerKind> layer_table() { return table; }

}  // namespace echelon::nn
