#include "graph/ops/permute.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "graph/attributes.h"
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

class Reverse : public Op, public WithAttributes {
 public:
  explicit Reverse(int axis) : axis_(axis) {}
  std::string_view name() const override { return "reverse"; }
  Attributes attributes() const override { return {{"axis", axis_}}; }
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

class Permute : public Op, public WithAttributes {
 public:
  explicit Permute(std::vector<int> axes) : axes_(std::move(axes)) {}
  std::string_view name() const override { return "permute"; }
  std::string detail() const override { return fmt::format("{}", fmt::join(axes_, " ")); }
  Attributes attributes() const override {
    Attributes all;
    for (std::size_t i = 0; i < axes_.size(); ++i) all[std::to_string(i)] = axes_[i];
    return all;
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& s = in[0].shape;
    std::vector<int> sorted = axes_;
    std::ranges::sort(sorted);
    bool all = static_cast<int>(sorted.size()) == s.rank() && in[0].dtype == DType::f32;
    for (int i = 0; all && i < s.rank(); ++i) all = sorted[static_cast<std::size_t>(i)] == i;
    if (!all) bad_input("{} cannot be put into the order [{}]", to_string(in[0]), fmt::join(axes_, ", "));
    std::vector<std::int64_t> dims;
    for (const int a : axes_) dims.push_back(s[a]);
    return {f32(Shape(dims))};
  }
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    std::vector<int> back(axes_.size());
    for (std::size_t i = 0; i < axes_.size(); ++i) back[static_cast<std::size_t>(axes_[i])] = static_cast<int>(i);
    return {permute(g, d_out[0], back)};
  }
  // The result from first to last, reading x with a stride for each dimension.
  Kernel compile(const Operands& o) const override {
    const Shape from = o.in[0].type.shape, to = o.out[0].type.shape;
    std::array<std::int64_t, Shape::max_rank> stride{}, in_stride{};
    std::int64_t step = 1;
    for (int i = from.rank() - 1; i >= 0; --i) in_stride[static_cast<std::size_t>(i)] = step, step *= from[i];
    for (std::size_t i = 0; i < axes_.size(); ++i) stride[i] = in_stride[static_cast<std::size_t>(axes_[i])];
    return [to, stride, rank = axes_.size(), n = to.elements(), x = o.in[0].f32(),
            y = o.out[0].f32()](const StepContext&) {
      if (n == 0) return;
      const std::int64_t last = to[-1], last_stride = stride[rank - 1];
      std::array<std::int64_t, Shape::max_rank> at{};
      std::int64_t from_here = 0;
      for (std::int64_t row = 0; row < n; row += last) {
        for (std::int64_t i = 0; i < last; ++i) y[row + i] = x[from_here + i * last_stride];
        for (int d = static_cast<int>(rank) - 2; d >= 0; --d) {
          const auto axis = static_cast<std::size_t>(d);
          from_here += stride[axis];
          if (++at[axis] < to[d]) break;
          from_here -= stride[axis] * to[d], at[axis] = 0;
        }
      }
    };
  }

 private:
  std::vector<int> axes_;
};

}  // namespace

Value permute(Graph& g, Value x, const std::vector<int>& axes) {
  return g.add_one(std::make_shared<Permute>(axes), {x});
}
Value transpose(Graph& g, Value x) { return g.add_one(std::make_shared<Transpose>(), {x}); }
Value reverse(Graph& g, Value x, int axis) { return g.add_one(std::make_shared<Reverse>(axis), {x}); }

}  // namespace echelon::ops
