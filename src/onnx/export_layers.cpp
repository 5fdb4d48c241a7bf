// Rows for layers on images and features.
#include <array>

#include "onnx/export_ops.h"

namespace echelon::onnx {
namespace {

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
      e.add("Add", {e.add("Mul", {y, e.with_ones_behind(e.in(1), 1, rank)}), e.with_ones_behind(e.in(2), 1, rank)}));
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
  const std::string gain = e.with_ones_behind(e.in(1), 1, e.shape(0).rank());
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

constexpr auto feature_table = std::to_array<ExportRow>({
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

std::span<const ExportRow> feature_rows() { return feature_table; }

}  // namespace echelon::onnx
