#include "graph/ops/broadcast.h"

#include <cstring>

#include "base/error.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon::ops {

namespace {

// (x, dy) -> for each of the rows of the smaller shape the product of both.
class RowDots : public Op {
 public:
  explicit RowDots(Shape rows) : rows_(rows) {}
  std::string_view name() const override { return "row_dots"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(rows_)}; }
  Kernel compile(const Operands& o) const override {
    const auto rows = static_cast<std::size_t>(rows_.elements());
    const std::size_t cols = rows == 0 ? 0 : o.in[0].stored() / rows;
    return [rows, cols, x = o.in[0].f32(), dy = o.in[1].f32(), ds = o.out[0].f32()](const StepContext&) {
      for (std::size_t r = 0; r < rows; ++r)
        ds[r] = static_cast<float>(kernels::dot(x + r * cols, dy + r * cols, cols));
    };
  }

 private:
  Shape rows_;
};

class ScaleRows : public Op {
 public:
  std::string_view name() const override { return "scale_rows"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[0].shape, &s = in[1].shape;
    bool fits = s.rank() <= x.rank() && in[0].dtype == DType::f32 && in[1].dtype == DType::f32;
    for (int i = 0; fits && i < s.rank(); ++i) fits = x[i] == s[i];
    if (!fits)
      bad_input("{} cannot be multiplied by {}, which is not the beginning of its shape", to_string(x), to_string(s));
    return {f32(x)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    return {
        wanted[0] ? scale_rows(g, d_out[0], node.in[1]) : Value{},
        wanted[1] ? g.add_one(std::make_shared<RowDots>(g.type(node.in[1]).shape), {node.in[0], d_out[0]}) : Value{}};
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    const std::size_t rows = o.in[1].stored(), cols = rows == 0 ? 0 : o.in[0].stored() / rows;
    return [rows, cols, x = o.in[0].f32(), s = o.in[1].f32(), y = o.out[0].f32()](const StepContext&) {
      for (std::size_t r = 0; r < rows; ++r) kernels::scale(y + r * cols, x + r * cols, s[r], cols);
    };
  }
};

kernels::ImageExtents extents(const Shape& x) {
  return {static_cast<std::size_t>(x[0]), static_cast<std::size_t>(x[1]), static_cast<std::size_t>(x[2]),
          static_cast<std::size_t>(x[3])};
}

class ChannelSums : public Op {
 public:
  std::string_view name() const override { return "channel_sums"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32({in[0].shape[1]})}; }
  Kernel compile(const Operands& o) const override {
    return [e = extents(o.in[0].type.shape), x = o.in[0].f32(), sums = o.out[0].f32()](const StepContext&) {
      kernels::channel_sum(x, Layout::plain, e, sums);
    };
  }
};

class AddChannels : public Op {
 public:
  std::string_view name() const override { return "add_channels"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& x = in[0].shape;
    if (x.rank() != 4 || !(in[1].shape == Shape{x[1]}))
      bad_input("{} needs one number for each channel, not {}", to_string(x), to_string(in[1].shape));
    return {f32(x)};
  }
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    return {d_out[0], wanted[1] ? g.add_one(std::make_shared<ChannelSums>(), {d_out[0]}) : Value{}};
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [e = extents(o.in[0].type.shape), x = o.in[0].f32(), b = o.in[1].f32(), y = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext&) {
      if (y != x) std::memcpy(y, x, n * sizeof(float));
      kernels::add_channel_bias(y, e, b);
    };
  }
};

}  // namespace

Value scale_rows(Graph& g, Value x, Value s) { return g.add_one(std::make_shared<ScaleRows>(), {x, s}); }
Value add_channels(Graph& g, Value x, Value b) { return g.add_one(std::make_shared<AddChannels>(), {x, b}); }

}  // namespace echelon::ops
