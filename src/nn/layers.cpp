// Names, parameters, and the layers on images and feature vectors. Sequences: sequence.cpp; the rest: functions.cpp.
#include "nn/layers.h"

#include <cmath>

#include "base/checked.h"
#include "graph/ops/conv.h"
#include "graph/ops/group_norm.h"
#include "graph/ops/linear.h"
#include "graph/ops/norm.h"
#include "graph/ops/shape.h"
#include "graph/ops/unshared_conv.h"
#include "graph/size_limit.h"

namespace echelon::nn {

Net Net::named(const std::string& name) const {
  Net copy = *this;
  copy.name_ = name;
  return copy;
}

// The scope of a new layer: under the name that `named` gave, or the next free one after its kind.
Graph::Scope Net::layer(const std::string& kind) {
  const std::string path = graph_.layer().empty() ? "" : graph_.layer() + ".";
  std::string name = name_.empty() ? kind : name_;
  if (!name_.empty() && names_->contains(path + name))
    bad_input("two layers are called '{}': give one of them another name", path + name);
  // Numbers are counted on from the last one, so that a thousand layers without names do not try a thousand each.
  if (name_.empty() && names_->contains(path + name)) {
    int& last = names_->at(path + name);
    do name = fmt::format("{}{}", kind, ++last);
    while (names_->contains(path + name));
  }
  names_->emplace(path + name, 1);
  return {graph_, name};
}

void Net::refuse(std::string_view kind, const std::string& text) const {
  bad_input("layer '{}' ({}): {}", graph_.layer().empty() ? "(top)" : graph_.layer(), kind, text);
}

void Net::refuse_decoding(std::string_view kind) const {
  if (decoding_) refuse(kind, "mixes positions of a text, so it cannot be given one at a time");
}

void Net::need_rank(std::string_view kind, Value x, int rank, std::string_view what) const {
  if (shape(x).rank() != rank) refuse(kind, fmt::format("needs {}, but its input is {}", what, to_string(shape(x))));
}

Value Net::parameter(const std::string& name, Shape shape, const Init& init, bool decays) {
  const std::string path = graph_.layer().empty() ? name : graph_.layer() + "." + name;
  return graph_.parameter({.name = path, .shape = shape, .init = init, .decays = decays});
}

Init Net::start(const std::optional<Init>& asked, std::int64_t fan_in, std::int64_t fan_out) const {
  Init init = asked ? *asked : init_ ? *init_ : torch_default(fan_in);
  init.fan_in = fan_in;
  init.fan_out = fan_out;
  return init;
}

Init Net::bias_start(const std::optional<Init>& asked, std::int64_t fan_in) const {
  return asked || init_ ? Init::zeros() : torch_default(fan_in);
}

// A weight, or the pair (v, gain) that makes one. The gain starts at the length that v is expected to have, so that the
// weight starts as it would without normalisation.
Value Net::weight(Shape shape, const Init& init, bool weight_norm) {
  if (!weight_norm) return parameter("weight", shape, init);
  const double length = deviation(init) * std::sqrt(static_cast<double>(shape.elements() / shape[0]));
  const Value v = parameter("weight_v", shape, init);
  const Value gain = parameter("weight_g", {shape[0]}, constant(static_cast<float>(length)), false);
  return ops::weight_norm(graph_, v, gain);
}

Value Net::linear(Value x, std::int64_t out, const LinearOptions& o) {
  const auto scope = layer("linear");
  if (shape(x).rank() < 1) refuse("linear", "needs features [.., n], but its input is " + to_string(shape(x)));
  if (out < 1) refuse("linear", fmt::format("cannot have {} outputs", out));
  const std::int64_t in = shape(x)[-1];
  const Value w = weight({out, in}, start(o.init, in, out), o.weight_norm);
  const Value b = o.bias ? parameter("bias", {out}, bias_start(o.init, in), false) : Value{};
  return ops::linear(graph_, x, w, b);
}

Value Net::conv2d(Value x, std::int64_t out, const Conv2dOptions& o) {
  const auto scope = layer("conv");
  refuse_decoding("conv2d");
  need_rank("conv2d", x, 4, "images [N, C, H, W]");
  const std::int64_t channels = shape(x)[1];
  if (out < 1 || o.kernel.h < 1 || o.kernel.w < 1)
    refuse("conv2d", fmt::format("cannot have {} outputs of {}x{} kernels", out, o.kernel.h, o.kernel.w));
  if (o.groups < 1 || channels % o.groups != 0 || out % o.groups != 0)
    refuse("conv2d", fmt::format("{} groups do not divide the {} channels of its input {} and its {} outputs", o.groups,
                                 channels, to_string(shape(x)), out));
  const Shape weights{out, channels / o.groups, o.kernel.h, o.kernel.w};
  const std::int64_t window = std::int64_t{o.kernel.h} * o.kernel.w,
                     fan_in = checked_multiply(weights[1], window, "the weights of an output");
  const Value w =
      weight(weights, start(o.init, fan_in, checked_multiply(out, window, "the weights of a channel")), o.weight_norm);
  const Value b = o.bias ? parameter("bias", {out}, bias_start(o.init, fan_in), false) : Value{};
  return ops::conv2d(graph_, x, w, b,
                     {.stride_h = o.stride.h,
                      .stride_w = o.stride.w,
                      .pad_h = o.padding.h,
                      .pad_w = o.padding.w,
                      .dilation_h = o.dilation.h,
                      .dilation_w = o.dilation.w,
                      .groups = o.groups});
}

Value Net::depthwise(Value x, Conv2dOptions o) {
  const std::int64_t channels = shape(x).rank() == 4 ? shape(x)[1] : 1;  // conv2d refuses what is no image
  o.groups = checked_narrow<int>(channels, "the channels of a depthwise convolution");
  return conv2d(x, channels, o);
}

// A sequence is an image of one row.
Value Net::conv1d(Value x, std::int64_t out, const Conv1dOptions& o) {
  const auto scope = layer("conv");
  refuse_decoding("conv1d");
  need_rank("conv1d", x, 3, "sequences [N, C, T]");
  const Shape s = shape(x);
  if (out < 1 || o.kernel < 1) refuse("conv1d", fmt::format("cannot have {} outputs of kernels of {}", out, o.kernel));
  if (o.groups < 1 || s[1] % o.groups != 0 || out % o.groups != 0)
    refuse("conv1d", fmt::format("{} groups do not divide the {} channels of its input {} and its {} outputs", o.groups,
                                 s[1], to_string(s), out));
  const Shape weights{out, s[1] / o.groups, 1, o.kernel};
  const std::int64_t fan_in = checked_multiply<std::int64_t>(weights[1], o.kernel, "the weights of an output");
  const std::int64_t fan_out = checked_multiply<std::int64_t>(out, o.kernel, "the weights of a channel");
  const Value w = parameter("weight", weights, start(o.init, fan_in, fan_out));
  const Value b = o.bias ? parameter("bias", {out}, bias_start(o.init, fan_in), false) : Value{};
  const Value y = ops::conv2d(graph_, ops::reshape(graph_, x, {s[0], s[1], 1, s[2]}), w, b,
                              {.stride_w = o.stride, .pad_w = o.padding, .dilation_w = o.dilation, .groups = o.groups});
  return ops::reshape(graph_, y, {s[0], out, shape(y)[3]});
}

Value Net::conv_transpose2d(Value x, std::int64_t out, const ConvTransposeOptions& o) {
  const auto scope = layer("conv_transpose");
  refuse_decoding("conv_transpose2d");
  need_rank("conv_transpose2d", x, 4, "images [N, C, H, W]");
  const std::int64_t channels = shape(x)[1];
  if (out < 1 || o.kernel.h < 1 || o.kernel.w < 1)
    refuse("conv_transpose2d", fmt::format("cannot have {} outputs of {}x{} kernels", out, o.kernel.h, o.kernel.w));
  if (o.groups < 1 || channels % o.groups != 0 || out % o.groups != 0)
    refuse("conv_transpose2d", fmt::format("{} groups do not divide the {} channels of its input {} and its {} outputs",
                                           o.groups, channels, to_string(shape(x)), out));
  const Shape weights{channels, out / o.groups, o.kernel.h, o.kernel.w};
  const std::int64_t window = std::int64_t{o.kernel.h} * o.kernel.w;
  // PyTorch counts the weights of one input channel as the fan-in.
  const std::int64_t fan_in = checked_multiply(weights[1], window, "the weights of an input");
  const std::int64_t fan_out = checked_multiply(channels / o.groups, window, "the weights of an output");
  const Value w = parameter("weight", weights, start(o.init, fan_in, fan_out));
  const Value b = o.bias ? parameter("bias", {out}, bias_start(o.init, fan_in), false) : Value{};
  try {
    return ops::conv_transpose2d(graph_, x, w, b,
                                 {.stride_h = o.stride.h,
                                  .stride_w = o.stride.w,
                                  .pad_h = o.padding.h,
                                  .pad_w = o.padding.w,
                                  .dilation_h = o.dilation.h,
                                  .dilation_w = o.dilation.w,
                                  .groups = o.groups},
                                 o.output_padding.h, o.output_padding.w);
  } catch (const TooLarge&) {
    throw;
  } catch (const BadInput& problem) {
    refuse("conv_transpose2d", problem.what());
  }
}

Value Net::locally_connected(Value x, std::int64_t out, const Conv2dOptions& o) {
  const auto scope = layer("local");
  refuse_decoding("locally_connected");
  const ops::UnsharedConv2d p{.kernel_h = o.kernel.h,
                              .kernel_w = o.kernel.w,
                              .stride_h = o.stride.h,
                              .stride_w = o.stride.w,
                              .pad_h = o.padding.h,
                              .pad_w = o.padding.w};
  try {
    const Shape weights = ops::unshared_weights(shape(x), out, p);
    const std::int64_t fan_in = weights[3];
    const Value w = parameter("weight", weights, start(o.init, fan_in, out));
    const Value b =
        o.bias ? parameter("bias", {weights[0], weights[1], out}, bias_start(o.init, fan_in), false) : Value{};
    return ops::unshared_conv2d(graph_, x, w, b, p);
  } catch (const TooLarge&) {
    throw;
  } catch (const BadInput& problem) {
    refuse("locally_connected", problem.what());
  }
}

Value Net::group_norm(Value x, int groups, float eps) {
  const auto scope = layer("norm");
  refuse_decoding("group_norm");
  if (shape(x).rank() < 2) refuse("group_norm", "needs [N, C, ...], but its input is " + to_string(shape(x)));
  if (groups < 1 || shape(x)[1] % groups != 0)
    refuse("group_norm", fmt::format("{} groups do not divide the {} channels of its input {}", groups, shape(x)[1],
                                     to_string(shape(x))));
  const Shape features{shape(x)[1]};
  const Value gamma = parameter("weight", features, Init::ones(), false);
  const Value beta = parameter("bias", features, Init::zeros(), false);
  return ops::group_norm(graph_, x, gamma, beta, groups, eps);
}

Value Net::batch_norm(Value x, const BatchNormOptions& o) {
  const auto scope = layer("bn");
  refuse_decoding("batch_norm");
  const Shape seen = shape(x);
  if (seen.rank() != 4 && seen.rank() != 3 && seen.rank() != 2)
    refuse("batch_norm", "needs [N, C, H, W], [N, C, T] or [N, C], but its input is " + to_string(seen));
  if (seen.rank() == 3) x = ops::reshape(graph_, x, {seen[0], seen[1], 1, seen[2]});
  const Shape features{shape(x)[1]};
  const Value gamma = parameter("weight", features, Init::ones(), false);
  const Value beta = parameter("bias", features, Init::zeros(), false);
  auto statistic = [&](const char* name, const Init& init) {
    return graph_.parameter({.name = graph_.layer() + "." + name,
                             .shape = features,
                             .init = init,
                             .kind = Parameter::Kind::statistic,
                             .decays = false,
                             .rate = o.rate});
  };
  const Value mean = statistic("running_mean", Init::zeros()), variance = statistic("running_var", Init::ones());
  const Value y = ops::batch_norm(graph_, x, gamma, beta, mean, variance, o.eps);
  return seen.rank() == 3 ? ops::reshape(graph_, y, seen) : y;
}

Value Net::layer_norm(Value x, float eps) {
  const auto scope = layer("norm");
  if (shape(x).rank() < 1) refuse("layer_norm", "needs features [.., n], but its input is " + to_string(shape(x)));
  const Shape features{shape(x)[-1]};
  const Value gamma = parameter("weight", features, Init::ones(), false);
  const Value beta = parameter("bias", features, Init::zeros(), false);
  return ops::layer_norm(graph_, x, gamma, beta, eps);
}

Value Net::local_response_norm(Value x, const ResponseNormOptions& o) {
  const auto scope = layer("lrn");
  need_rank("local_response_norm", x, 4, "images [N, C, H, W]");
  return ops::local_response_norm(graph_, x, o.size, o.alpha, o.beta, o.k);
}

}  // namespace echelon::nn
