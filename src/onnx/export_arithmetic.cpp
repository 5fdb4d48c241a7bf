// Rows for arithmetic and shapes.
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

void scale_rows_onnx(NodeExport& e) {
  e.result(e.add("Mul", {e.in(0), e.with_ones_behind(e.in(1), e.shape(1).rank(), e.shape(0).rank())}));
}
void add_channels_onnx(NodeExport& e) { e.result(e.add("Add", {e.in(0), e.with_ones_behind(e.in(1), 1, 3)})); }

void fill_onnx(NodeExport& e) { e.result(e.filled(static_cast<float>(e.attribute("value")))); }
void zeros_onnx(NodeExport& e) { e.result(e.filled(0)); }
void noise_onnx(NodeExport& e) { e.input("noise"); }

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
});

}  // namespace

std::span<const ExportRow> plain_rows() { return plain_table; }

}  // namespace echelon::onnx
