#include "nn/layer_readers.h"

#include "base/error.h"

namespace echelon::nn {

int small(OptionReader& o, const std::string& key, int fallback, int least, int most) {
  return static_cast<int>(o.integer(key, fallback, least, most));
}
float real(OptionReader& o, const std::string& key, double fallback, double least, double most) {
  return static_cast<float>(o.number(key, fallback, least, most));
}
std::int64_t size(OptionReader& o, const std::string& key, std::string_view why) {
  return o.require(key, why) ? o.integer(key, 1, 1, huge) : 1;
}

Size2 pair(OptionReader& o, const std::string& key, int fallback, int least) {
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

namespace {

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

}  // namespace

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

}  // namespace echelon::nn
