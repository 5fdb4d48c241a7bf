#include "graph/ops/permute.h"

#include <cstring>

#include "base/error.h"
#include "kernels/transpose.h"

namespace echelon::ops {

namespace {

class Transpose : public Op {
 public:
  std::string_view name() const override { return "transpose"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    Shape s = in[0].shape;
    if (s.rank() < 2 || in[0].dtype != DType::f32)
      bad_input("needs numbers of two dimensions or more, not {}", to_string(in[0]));
    std::swap(s[-1], s[-2]);
    return {f32(s)};
  }
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {transpose(g, d_out[0])};
  }
  Kernel compile(const Operands& o) const override {
    const Shape& s = o.in[0].type.shape;
    const auto rows = static_cast<std::size_t>(s[-2]), cols = static_cast<std::size_t>(s[-1]);
    const std::size_t batch = rows * cols == 0 ? 0 : o.in[0].stored() / (rows * cols);
    return
        [=, x = o.in[0].f32(), y = o.out[0].f32()](const StepContext&) { kernels::transpose(x, y, batch, rows, cols); };
  }
};

class Reverse : public Op {
 public:
  explicit Reverse(int axis) : axis_(axis) {}
  std::string_view name() const override { return "reverse"; }
  std::string detail() const override { return fmt::format("axis {}", axis_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (axis_ < 0 || axis_ >= in[0].shape.rank()) bad_input("{} has no axis {}", to_string(in[0].shape), axis_);
    return {Type{in[0].dtype, in[0].shape}};
  }
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {reverse(g, d_out[0], axis_)};
  }
  Kernel compile(const Operands& o) const override {
    const Type& t = o.in[0].type;
    std::size_t outer = 1, inner = size_of(t.dtype);
    for (int i = 0; i < axis_; ++i) outer *= static_cast<std::size_t>(t.shape[i]);
    for (int i = axis_ + 1; i < t.shape.rank(); ++i) inner *= static_cast<std::size_t>(t.shape[i]);
    const auto extent = static_cast<std::size_t>(t.shape[axis_]);
    return [=, x = o.in[0].data, y = o.out[0].data](const StepContext&) {
      for (std::size_t b = 0; b < outer; ++b)
        for (std::size_t i = 0; i < extent; ++i)
          std::memcpy(y + (b * extent + i) * inner, x + (b * extent + extent - 1 - i) * inner, inner);
    };
  }

 private:
  int axis_;
};

}  // namespace

Value transpose(Graph& g, Value x) { return g.add_one(std::make_shared<Transpose>(), {x}); }
Value reverse(Graph& g, Value x, int axis) { return g.add_one(std::make_shared<Reverse>(axis), {x}); }

}  // namespace echelon::ops
