// The kinds of layers that a recipe can name, and their keys.
#include <array>

#include "nn/layer_readers.h"

namespace echelon::nn {
namespace {

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
