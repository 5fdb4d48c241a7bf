// Rows for arithmetic, shapes, and layers on images and features.
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "onnx/export_ops.h"

namespace echelon::onnx {
namespace {

using kernels::Ew;

// The one ONNX op that is the same, if there is one.
const char* same_op(Ew op) {
  switch (op) {
    case Ew::add: return "Add";
    case Ew::sub: return "Sub";
    case Ew::mul: return "Mul";
    case Ew::div: return "Div";
    case Ew::max: return "Max";
    case Ew::min: return "Min";
    case Ew::neg: return "Neg";
    case Ew::abs: return "Abs";
    case Ew::sign: return "Sign";
    case Ew::sqrt: return "Sqrt";
    case Ew::exp: return "Exp";
    case Ew::log: return "Log";
    case Ew::relu: return "Relu";
    case Ew::sigmoid: return "Sigmoid";
    case Ew::tanh: return "Tanh";
    case Ew::softplus: return "Softplus";
    default: return nullptr;
  }
}

std::string element_step(NodeExport& e, const kernels::EwStep& s, const std::string& a, const std::string& b) {
  if (const char* type = same_op(s.op))
    return e.add(type, kernels::arity(s.op) == 2 ? std::vector{a, b} : std::vector{a});
  switch (s.op) {
    case Ew::greater: return e.add("Cast", {e.add("Greater", {a, b})}, {{"to", integer(1)}});
    case Ew::square: return e.add("Mul", {a, a});
    case Ew::scale: return e.add("Mul", {a, e.constant(s.c)});
    case Ew::offset: return e.add("Add", {a, e.constant(s.c)});
    case Ew::clamp: return e.add("Clip", {a, e.constant(-s.c), e.constant(s.c)});
    case Ew::leaky_relu: return e.add("LeakyRelu", {a}, {{"alpha", real(double{s.c})}});
    case Ew::elu: return e.add("Elu", {a}, {{"alpha", real(double{s.c})}});
    case Ew::gelu: {
      const std::string erf = e.add("Erf", {e.add("Mul", {a, e.constant(static_cast<float>(std::sqrt(0.5)))})});
      return e.add("Mul", {e.add("Mul", {a, e.constant(0.5f)}), e.add("Add", {erf, e.constant(1.0f)})});
    }
    default: e.refuse("gradients are not exported");
  }
}

void element_wise(NodeExport& e) {
  const auto* program = ops::elementwise_program(e.op());
  invariant(program != nullptr, "rows of element-wise ops are for those");
  std::vector<std::string> values;
  for (std::size_t i = 0; i < e.inputs(); ++i) values.push_back(e.in(i));
  const auto at = [&](int i) { return i < 0 ? std::string() : values.at(static_cast<std::size_t>(i)); };
  for (const kernels::EwStep& s : *program) values.push_back(element_step(e, s, at(s.a), at(s.b)));
  e.result(values.back());
}

void multiply_onnx(NodeExport& e) { e.result(e.add("Mul", {e.in(0), e.in(1)})); }
void identity_onnx(NodeExport& e) { e.result(e.in(0)); }
void add_onnx(NodeExport& e) { e.result(e.add("Add", {e.in(0), e.in(1)})); }

void sum_all(NodeExport& e) {
  std::vector<std::string> in;
  for (std::size_t i = 0; i < e.inputs(); ++i) in.push_back(e.in(i));
  e.result(in.size() == 1 ? in[0] : e.add("Sum", in));
}

// --- shapes ---
void reshape_onnx(NodeExport& e) { e.result(e.reshaped(e.in(0))); }

void concat_onnx(NodeExport& e) {
  std::vector<std::string> in;
  for (std::size_t i = 0; i < e.inputs(); ++i) in.push_back(e.in(i));
  e.result(e.add("Concat", in, {{"axis", integer(e.whole("axis"))}}));
}

void slice_onnx(NodeExport& e) {
  e.result(e.add("Slice", {e.in(0), e.constant(Ints{e.whole("begin")}), e.constant(Ints{e.whole("end")}),
                           e.constant(Ints{e.whole("axis")})}));
}

void split_onnx(NodeExport& e) {
  const auto axis = e.whole("axis");
  Ints extents;
  for (std::size_t i = 0; i < e.outputs(); ++i) extents.push_back(e.out_shape(i)[static_cast<int>(axis)]);
  const auto parts = e.add_many("Split", {e.in(0), e.constant(extents)}, e.outputs(), {{"axis", integer(axis)}});
  for (std::size_t i = 0; i < parts.size(); ++i) e.result(parts[i], i);
}

void transpose_onnx(NodeExport& e) {
  Ints axes;
  for (int i = 0; i < e.shape(0).rank(); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  e.result(e.add("Transpose", {e.in(0)}, {{"perm", list(axes)}}));
}

void permute_onnx(NodeExport& e) {
  Ints axes;
  for (int i = 0; i < e.shape(0).rank(); ++i) axes.push_back(e.whole(std::to_string(i)));
  e.result(e.add("Transpose", {e.in(0)}, {{"perm", list(axes)}}));
}

void reverse_onnx(NodeExport& e) {
  e.result(e.add("Slice", {e.in(0), e.constant(Ints{-1}), e.constant(Ints{std::numeric_limits<std::int64_t>::min()}),
                           e.constant(Ints{e.whole("axis")}), e.constant(Ints{-1})}));
}

void repeat_tail_onnx(NodeExport& e) { e.result(e.add("Add", {e.filled(0), e.in(0)})); }

void sum_to_tail_onnx(NodeExport& e) {
  Ints axes;
  for (int i = 0; i < e.shape(0).rank() - e.out_shape().rank(); ++i) axes.push_back(i);
  e.result(axes.empty() ? e.in(0) : e.add("ReduceSum", {e.in(0), e.constant(axes)}, {{"keepdims", integer(0)}}));
}

// Numbers for the leading dimensions of x, or for its channels.
std::string with_ones_behind(NodeExport& e, const std::string& s, int from, int rank) {
  Ints axes;
  for (int i = from; i < rank; ++i) axes.push_back(i);
  return axes.empty() ? s : e.add("Unsqueeze", {s, e.constant(axes)});
}

void scale_rows_onnx(NodeExport& e) {
  e.result(e.add("Mul", {e.in(0), with_ones_behind(e, e.in(1), e.shape(1).rank(), e.shape(0).rank())}));
}
void add_channels_onnx(NodeExport& e) { e.result(e.add("Add", {e.in(0), with_ones_behind(e, e.in(1), 1, 3)})); }

void fill_onnx(NodeExport& e) { e.result(e.filled(static_cast<float>(e.attribute("value")))); }
void zeros_onnx(NodeExport& e) { e.result(e.filled(0)); }
void noise_onnx(NodeExport& e) { e.input("noise"); }

// --- layers ---
void linear_onnx(NodeExport& e) {
  if (e.shape(0).rank() == 2) {
    std::vector<std::string> in{e.in(0), e.in(1)};
    if (e.inputs() > 2) in.push_back(e.in(2));
    return e.result(e.add("Gemm", in, {{"transB", integer(1)}}));
  }
  const std::string y = e.add("MatMul", {e.in(0), e.add("Transpose", {e.in(1)}, {{"perm", list({1, 0})}})});
  e.result(e.inputs() > 2 ? e.add("Add", {y, e.in(2)}) : y);
}

void matmul_onnx(NodeExport& e) {
  e.result(e.add("Gemm", {e.in(0), e.in(1)},
                 {{"transA", integer(e.whole("transpose_a"))}, {"transB", integer(e.whole("transpose_b"))}}));
}
void batch_matmul_onnx(NodeExport& e) {
  std::string a = e.in(0), b = e.in(1);
  Ints axes;
  for (int i = 0; i < e.shape(0).rank(); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  const auto turned = [&](const std::string& x) { return e.add("Transpose", {x}, {{"perm", list(axes)}}); };
  if (e.whole("transpose_a")) a = turned(a);
  if (e.whole("transpose_b")) b = turned(b);
  e.result(e.add("MatMul", {a, b}));
}

OnnxAttributes window(NodeExport& e) {
  return {{"strides", list({e.whole("stride_h"), e.whole("stride_w")})},
          {"pads", list({e.whole("pad_h"), e.whole("pad_w"), e.whole("pad_h"), e.whole("pad_w")})}};
}

OnnxAttributes conv_window(NodeExport& e) {
  OnnxAttributes a = window(e);
  a["dilations"] = list({e.whole("dilation_h"), e.whole("dilation_w")});
  a["group"] = integer(e.whole("groups"));
  a["kernel_shape"] = list({e.shape(1)[2], e.shape(1)[3]});
  return a;
}

void conv_onnx(NodeExport& e) {
  std::vector<std::string> in{e.in(0), e.in(1)};
  if (e.inputs() > 2) in.push_back(e.in(2));
  e.result(e.add("Conv", in, conv_window(e)));
}

void conv_transpose_onnx(NodeExport& e) {
  OnnxAttributes a = conv_window(e);
  const auto more = [&](int axis, const std::string& h) {
    return e.out_shape()[axis] - ((e.shape(0)[axis] - 1) * e.whole("stride_" + h) - 2 * e.whole("pad_" + h) +
                                  e.whole("dilation_" + h) * (e.shape(1)[axis] - 1) + 1);
  };
  a["output_padding"] = list({more(2, "h"), more(3, "w")});
  e.result(e.add("ConvTranspose", {e.in(0), e.in(1)}, a));
}

void pool_onnx(NodeExport& e) {
  const bool max = e.op().name() == "max_pool";
  OnnxAttributes a = window(e);
  a["kernel_shape"] = list({e.whole("kernel_h"), e.whole("kernel_w")});
  if (!max) a["count_include_pad"] = integer(e.whole("count_padding"));
  e.result(e.add(max ? "MaxPool" : "AveragePool", {e.in(0)}, a));
}

void batch_norm_onnx(NodeExport& e) {
  e.result(e.add("BatchNormalization", {e.in(0), e.in(1), e.in(2), e.in(3), e.in(4)},
                 {{"epsilon", real(e.attribute("eps"))}}));
}

void layer_norm_onnx(NodeExport& e) {
  e.result(e.add("LayerNormalization", {e.in(0), e.in(1), e.in(2)},
                 {{"axis", integer(-1)}, {"epsilon", real(e.attribute("eps"))}}));
}

// Opset 17 knows it as the normalisation of each instance's group, then scale and shift by channel.
void group_norm_onnx(NodeExport& e) {
  const auto groups = static_cast<std::size_t>(e.whole("groups"));
  const std::string one = e.constant({static_cast<std::int64_t>(groups)}, std::vector<float>(groups, 1)),
                    zero = e.constant({static_cast<std::int64_t>(groups)}, std::vector<float>(groups, 0));
  const std::string x = e.reshaped(e.in(0), Ints{0, static_cast<std::int64_t>(groups), -1});
  const std::string y =
      e.reshaped(e.add("InstanceNormalization", {x, one, zero}, {{"epsilon", real(e.attribute("eps"))}}));
  const int rank = e.shape(0).rank() - 1;
  e.result(
      e.add("Add", {e.add("Mul", {y, with_ones_behind(e, e.in(1), 1, rank)}), with_ones_behind(e, e.in(2), 1, rank)}));
}

void unshared_conv_onnx(NodeExport& e) { e.refuse("ONNX has no layer with weights of its own at every place"); }

void response_norm_onnx(NodeExport& e) {
  e.result(e.add("LRN", {e.in(0)},
                 {{"size", integer(e.whole("size"))},
                  {"alpha", real(e.attribute("alpha"))},
                  {"beta", real(e.attribute("beta"))},
                  {"bias", real(e.attribute("k"))}}));
}

void weight_norm_onnx(NodeExport& e) {
  Ints axes;
  for (int i = 1; i < e.shape(0).rank(); ++i) axes.push_back(i);
  const std::string length = e.add("ReduceL2", {e.in(0)}, {{"axes", list(axes)}, {"keepdims", integer(1)}});
  const std::string gain = with_ones_behind(e, e.in(1), 1, e.shape(0).rank());
  e.result(e.add("Mul", {e.in(0), e.add("Div", {gain, length})}));
}

void embedding_onnx(NodeExport& e) {
  if (!e.has("first")) return e.result(e.add("Gather", {e.in(0), e.in(1)}, {{"axis", integer(0)}}));
  // A part of a table: ids of other rows give zeros.
  const std::int64_t rows = e.shape(0)[0];
  const std::string ids =
      e.add("Sub", {e.add("Cast", {e.in(1)}, {{"to", integer(7)}}), e.constant(Ints{e.whole("first")})});
  const std::string here =
      e.add("And", {e.add("GreaterOrEqual", {ids, e.constant(Ints{0})}), e.add("Less", {ids, e.constant(Ints{rows})})});
  const std::string found =
      e.add("Gather", {e.in(0), e.add("Where", {here, ids, e.constant(Ints{0})})}, {{"axis", integer(0)}});
  const std::string mask = e.add("Cast", {e.add("Unsqueeze", {here, e.constant(Ints{-1})})}, {{"to", integer(1)}});
  e.result(e.add("Mul", {found, mask}));
}
void softmax_onnx(NodeExport& e) { e.result(e.add("Softmax", {e.in(0)}, {{"axis", integer(-1)}})); }

constexpr auto plain_table = std::to_array<ExportRow>({
    {"add", element_wise},
    {"sub", element_wise},
    {"mul", element_wise},
    {"div", element_wise},
    {"max", element_wise},
    {"min", element_wise},
    {"greater", element_wise},
    {"neg", element_wise},
    {"abs", element_wise},
    {"sign", element_wise},
    {"square", element_wise},
    {"sqrt", element_wise},
    {"exp", element_wise},
    {"log", element_wise},
    {"scale", element_wise},
    {"offset", element_wise},
    {"clamp", element_wise},
    {"relu", element_wise},
    {"leaky_relu", element_wise},
    {"gelu", element_wise},
    {"sigmoid", element_wise},
    {"tanh", element_wise},
    {"softplus", element_wise},
    {"elu", element_wise},
    {"elementwise", element_wise},
    {"scale_by", multiply_onnx},
    {"copy", identity_onnx},
    {"tree_sum", sum_all},
    {"reshape", reshape_onnx},
    {"concat", concat_onnx},
    {"slice", slice_onnx},
    {"split", split_onnx},
    {"transpose", transpose_onnx},
    {"permute", permute_onnx},
    {"reverse", reverse_onnx},
    {"add_tail", add_onnx},
    {"repeat_tail", repeat_tail_onnx},
    {"sum_to_tail", sum_to_tail_onnx},
    {"scale_rows", scale_rows_onnx},
    {"add_channels", add_channels_onnx},
    {"filled", fill_onnx},
    {"zeros", zeros_onnx},
    {"normal_noise", noise_onnx},
    {"linear", linear_onnx},
    {"matmul", matmul_onnx},
    {"batch_matmul", batch_matmul_onnx},
    {"conv2d", conv_onnx},
    {"conv2d_grad_data", conv_transpose_onnx},
    {"max_pool", pool_onnx},
    {"avg_pool", pool_onnx},
    {"batch_norm_inference", batch_norm_onnx},
    {"layer_norm", layer_norm_onnx},
    {"group_norm", group_norm_onnx},
    {"unshared_conv2d", unshared_conv_onnx},
    {"local_response_norm", response_norm_onnx},
    {"weight_norm", weight_norm_onnx},
    {"embedding", embedding_onnx},
    {"softmax", softmax_onnx},
});

}  // namespace

std::span<const ExportRow> plain_rows() { return plain_table; }

}  // namespace echelon::onnx
