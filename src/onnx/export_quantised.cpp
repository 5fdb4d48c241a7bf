// Rows for few-bit numbers and mixtures of experts.
#include <array>
#include <cmath>

#include "onnx/export_ops.h"

namespace echelon::onnx {
namespace {

std::string peak_of(NodeExport& e, const std::string& x) {
  return e.add("ReduceMax", {e.add("Abs", {x})}, {{"keepdims", integer(0)}});
}
std::string as_floats(NodeExport& e, const std::string& x) { return e.add("Cast", {x}, {{"to", integer(1)}}); }

// clamp(round(x * in_scale + in_offset), least, most), as kernels/quantise.h rounds; ties go to even numbers in both.
std::string rounded(NodeExport& e, const std::string& scaled, float least, float most) {
  return e.add("Clip", {e.add("Round", {scaled}), e.constant(least), e.constant(most)});
}

void unit_steps_onnx(NodeExport& e) {
  const auto levels = static_cast<float>(e.attribute("levels"));
  const std::string steps = rounded(e, e.add("Mul", {e.in(0), e.constant(levels)}), 0, levels);
  e.result(e.add("Mul", {steps, e.constant(1 / levels)}));
}

void peak_steps_onnx(NodeExport& e) {
  const auto levels = static_cast<float>(e.attribute("levels"));
  const std::string peak = peak_of(e, e.in(0));
  const std::string safe = e.add("Max", {peak, e.constant(1e-38f)});  // all zeros stay zeros, by the mask below
  const std::string scale = e.add("Div", {e.constant(levels), e.add("Mul", {safe, e.constant(2.0f)})});
  const std::string steps =
      rounded(e, e.add("Add", {e.add("Mul", {e.in(0), scale}), e.constant(levels / 2)}), 0, levels);
  const std::string size = e.whole("keep_scale") ? peak : as_floats(e, e.add("Greater", {peak, e.constant(0.0f)}));
  const std::string step = e.add("Mul", {size, e.constant(2 / levels)});
  e.result(e.add("Sub", {e.add("Mul", {steps, step}), size}));
}

void binary_onnx(NodeExport& e) {
  const std::string sign =
      e.add("Where", {e.add("Less", {e.in(0), e.constant(0.0f)}), e.constant(-1.0f), e.constant(1.0f)});
  if (!e.whole("keep_scale")) return e.result(sign);
  const std::string mean = e.add("ReduceMean", {e.add("Abs", {e.in(0)})}, {{"keepdims", integer(0)}});
  e.result(e.add("Mul", {sign, mean}));
}

void ternary_onnx(NodeExport& e) {
  const std::string sizes = e.add("Abs", {e.in(0)});
  const std::string mean = e.add("ReduceMean", {sizes}, {{"keepdims", integer(0)}});
  const std::string kept = as_floats(e, e.add("Greater", {sizes, e.add("Mul", {mean, e.constant(0.7f)})}));
  const std::string count = e.add("Max", {e.add("ReduceSum", {kept}, {{"keepdims", integer(0)}}), e.constant(1.0f)});
  const std::string sum = e.add("ReduceSum", {e.add("Mul", {kept, sizes})}, {{"keepdims", integer(0)}});
  e.result(e.add("Mul", {e.add("Mul", {e.add("Sign", {e.in(0)}), kept}), e.add("Div", {sum, count})}));
}

std::string in_steps(NodeExport& e, const std::string& step, int bits) {
  const float most = std::ldexp(1.0f, bits - 1);
  return e.add("Mul", {rounded(e, e.add("Div", {e.in(0), step}), -most, most - 1), step});
}

void fixed_point_onnx(NodeExport& e) {
  const int bits = static_cast<int>(e.whole("bits")), fraction = static_cast<int>(e.whole("fraction"));
  e.result(in_steps(e, e.constant(std::ldexp(1.0f, -fraction)), bits));
}

// The exponent of the greatest number: the powers of two that are not above it are counted, because a logarithm can be
// off by one at a power of two.
void shared_exponent_onnx(NodeExport& e) {
  const int bits = static_cast<int>(e.whole("bits"));
  std::vector<float> powers;
  for (int p = -126; p <= 127; ++p) powers.push_back(std::ldexp(1.0f, p));
  const std::string reached = e.add("GreaterOrEqual", {peak_of(e, e.in(0)), e.constant({std::ssize(powers)}, powers)});
  // peak = 2^-126 reaches one of them and has frexp's exponent -125, so the exponent is -126 and one for each.
  const std::string exponent =
      e.add("Add", {e.add("ReduceSum", {as_floats(e, reached)}, {{"keepdims", integer(0)}}), e.constant(-126.0f)});
  const std::string low =
      e.add("Max", {e.add("Sub", {exponent, e.constant(static_cast<float>(bits - 1))}), e.constant(-126.0f)});
  e.result(in_steps(e, e.add("Pow", {e.constant(2.0f), low}), bits));
}

// --- mixtures of experts, for a fixed batch ---
std::string one_hot(NodeExport& e, const std::string& at, std::int64_t depth) {
  return e.add("OneHot", {at, e.constant(Ints{depth}), e.constant({2}, std::vector<float>{0, 1})},
               {{"axis", integer(-1)}});
}

// probabilities[rows, experts] -> slots, gates. First choices of all rows come before second ones.
void route_onnx(NodeExport& e) {
  const std::int64_t rows = e.shape(0)[0], experts = e.shape(0)[1], top = e.whole("top");
  const auto best = e.add_many("TopK", {e.in(0), e.constant(Ints{top})}, 2, {{"axis", integer(1)}});
  const std::string both = e.add("ReduceSum", {best[0], e.constant(Ints{1})}, {{"keepdims", integer(1)}});
  e.result(top == 1 ? best[0] : e.add("Div", {best[0], both}), 1);
  const std::string turned = e.add("Transpose", {best[1]}, {{"perm", list({1, 0})}});
  const std::string choice = e.reshaped(turned, Ints{top * rows}), hot = one_hot(e, choice, experts);
  const std::string before =
      e.add("CumSum", {hot, e.add("Squeeze", {e.constant(Ints{0})})}, {{"exclusive", integer(1)}});
  const std::string place = e.add(
      "Cast", {e.add("ReduceSum", {e.add("Mul", {hot, before}), e.constant(Ints{1})}, {{"keepdims", integer(0)}})},
      {{"to", integer(7)}});
  const std::string room = e.constant(Ints{e.whole("capacity")});
  const std::string slot = e.add("Where", {e.add("Less", {place, room}),
                                           e.add("Add", {e.add("Mul", {choice, room}), place}), e.constant(Ints{-1})});
  e.result(e.add("Transpose", {e.reshaped(slot, Ints{top, rows})}, {{"perm", list({1, 0})}}));
}

// [rows, top, slots]: which slot of this range each route of a row has; none for one that was dropped.
std::string routes_to_slots(NodeExport& e, const std::string& slots, std::int64_t first, std::int64_t count) {
  // One-hot counts negative places from the end: shift by one and leave out the first column.
  const std::string shifted = e.add("Sub", {slots, e.constant(Ints{first - 1})});
  const std::string inside = e.add("And", {e.add("Greater", {shifted, e.constant(Ints{0})}),
                                           e.add("LessOrEqual", {shifted, e.constant(Ints{count})})});
  const std::string hot = one_hot(e, e.add("Where", {inside, shifted, e.constant(Ints{0})}), count + 1);
  return e.add("Slice", {hot, e.constant(Ints{1}), e.constant(Ints{count + 1}), e.constant(Ints{2})});
}

void dispatch_onnx(NodeExport& e) {
  const std::string hot = routes_to_slots(e, e.in(1), e.whole("first"), e.whole("slots"));
  const std::string which = e.add("ReduceSum", {hot, e.constant(Ints{1})}, {{"keepdims", integer(0)}});
  e.result(e.reshaped(e.add("Gemm", {which, e.in(0)}, {{"transA", integer(1)}})));
}

void combine_onnx(NodeExport& e) {
  const std::string hot = routes_to_slots(e, e.in(1), e.whole("first"), e.whole("slots"));
  const std::string gates = e.add("Unsqueeze", {e.in(2), e.constant(Ints{2})});
  const std::string weights =
      e.add("ReduceSum", {e.add("Mul", {hot, gates}), e.constant(Ints{1})}, {{"keepdims", integer(0)}});
  e.result(e.add("Gemm", {weights, e.reshaped(e.in(0), Ints{e.whole("slots"), e.shape(0)[2]})}));
}

void expert_linear_onnx(NodeExport& e) {
  const std::string y = e.add("MatMul", {e.in(0), e.add("Transpose", {e.in(1)}, {{"perm", list({0, 2, 1})}})});
  e.result(e.add("Add", {y, e.add("Unsqueeze", {e.in(2), e.constant(Ints{1})})}));
}

constexpr auto quantised_table = std::to_array<ExportRow>({
    {"unit_steps", unit_steps_onnx},
    {"peak_steps", peak_steps_onnx},
    {"binary", binary_onnx},
    {"ternary", ternary_onnx},
    {"fixed_point", fixed_point_onnx},
    {"shared_exponent", shared_exponent_onnx},
    {"route", route_onnx},
    {"dispatch", dispatch_onnx},
    {"combine", combine_onnx},
    {"expert_linear", expert_linear_onnx},
});

}  // namespace

std::span<const ExportRow> quantised_rows() { return quantised_table; }

}  // namespace echelon::onnx
