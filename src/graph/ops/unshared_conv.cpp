#include "graph/ops/unshared_conv.h"

#include "base/error.h"
#include "graph/ops/strips.h"
#include "kernels/conv/unshared_conv.h"

namespace echelon::ops {

namespace {

kernels::UnsharedConvShape unshared_shape(const Shape& x, std::int64_t out, const UnsharedConv2d& p) {
  return {.n = x[0],
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .out_c = out,
          .kh = p.kernel_h,
          .kw = p.kernel_w,
          .stride_h = p.stride_h,
          .stride_w = p.stride_w,
          .pad_h = p.pad_h,
          .pad_w = p.pad_w};
}

double unshared_flops(const kernels::UnsharedConvShape& s) {
  return 2.0 * static_cast<double>(s.n * s.out_c * s.window()) * static_cast<double>(s.out_h() * s.out_w());
}

// (dy, w) -> dx
class UnsharedGradData : public Op {
 public:
  explicit UnsharedGradData(const kernels::UnsharedConvShape& s) : s_(s) {}
  std::string_view name() const override { return "unshared_conv2d_data_grad"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32({s_.n, s_.c, s_.h, s_.w})}; }
  double flops(std::span<const Type>, std::span<const Type>) const override { return unshared_flops(s_); }
  std::size_t scratch_bytes(std::span<const Type>, std::span<const Type>) const override {
    return kernels::unshared_conv_scratch(s_);
  }
  Kernel compile(const Operands& o) const override {
    return [s = s_, dy = o.in[0].f32(), w = o.in[1].f32(), dx = o.out[0].f32(),
            scratch = o.scratch](const StepContext&) { kernels::unshared_conv_grad_data(s, dy, w, dx, scratch); };
  }

 private:
  kernels::UnsharedConvShape s_;
};

// (x, dy) -> dw [, dbias]
class UnsharedGradWeights : public Op {
 public:
  UnsharedGradWeights(const kernels::UnsharedConvShape& s, bool bias) : s_(s), bias_(bias) {}
  std::string_view name() const override { return "unshared_conv2d_weights_grad"; }
  std::vector<Type> infer(std::span<const Type>) const override {
    std::vector<Type> out{f32({s_.out_h(), s_.out_w(), s_.out_c, s_.window()})};
    if (bias_) out.push_back(f32({s_.out_h(), s_.out_w(), s_.out_c}));
    return out;
  }
  double flops(std::span<const Type>, std::span<const Type>) const override { return unshared_flops(s_); }
  std::size_t scratch_bytes(std::span<const Type>, std::span<const Type>) const override {
    return kernels::unshared_conv_scratch(s_);
  }
  Kernel compile(const Operands& o) const override {
    return [s = s_, x = o.in[0].f32(), dy = o.in[1].f32(), dw = o.out[0].f32(),
            dbias = bias_ ? o.out[1].f32() : nullptr, scratch = o.scratch](const StepContext&) {
      kernels::unshared_conv_grad_weights(s, x, dy, dw, dbias, scratch);
    };
  }

 private:
  kernels::UnsharedConvShape s_;
  bool bias_;
};

class UnsharedConvolution : public Op {
 public:
  explicit UnsharedConvolution(const UnsharedConv2d& p) : p_(p) {}
  std::string_view name() const override { return "unshared_conv2d"; }
  int weights_input() const override { return 1; }
  std::string detail() const override {
    return fmt::format("{}x{} stride {} pad {}", p_.kernel_h, p_.kernel_w, p_.stride_h, p_.pad_h);
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[0].shape, &w = in[1].shape;
    if (w.rank() != 4 || !(unshared_weights(x, w[2], p_) == w))
      bad_input("input {} does not fit weights {} of a locally connected layer", to_string(x), to_string(w));
    if (in.size() > 2 && !(in[2].shape == Shape{w[0], w[1], w[2]}))
      bad_input("bias {} does not fit weights {}", to_string(in[2].shape), to_string(w));
    return {f32({x[0], w[2], w[0], w[1]})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const Value x = node.in[0], w = node.in[1], dy = d_out[0];
    const auto s = unshared_shape(g.type(x).shape, g.type(w).shape[2], p_);
    std::vector<Value> d(node.in.size());
    const bool bias = node.in.size() > 2;
    if (wanted[1] || (bias && wanted[2])) {
      const auto dw = g.add(std::make_shared<UnsharedGradWeights>(s, bias), {x, dy});
      d[1] = dw[0];
      if (bias) d[2] = dw[1];
    }
    if (wanted[0]) d[0] = g.add_one(std::make_shared<UnsharedGradData>(s), {dy, w});
    return d;
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    UnsharedConv2d in_rows = p_, in_columns = p_;
    in_rows.pad_h = in_columns.pad_w = 0;
    const Shape& w = q.in[1].shape;
    auto rule = strips_rule(
        q, {w[0], {p_.kernel_h, p_.stride_h, p_.pad_h}, std::make_shared<UnsharedConvolution>(in_rows)},
        {w[1], {p_.kernel_w, p_.stride_w, p_.pad_w}, std::make_shared<UnsharedConvolution>(in_columns)}, 1, 0);
    // The weights of a row, or of a column, are its own.
    for (std::size_t i = 1; rule && i < rule->in.size(); ++i) rule->in[i] = {strip_axis(q) == rows_axis ? 0 : 1};
    if (rule) rule->strip->widens = false;
    return rule;
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    return unshared_flops(unshared_shape(in[0].shape, in[1].shape[2], p_));
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::unshared_conv_scratch(unshared_shape(in[0].shape, in[1].shape[2], p_));
  }
  Kernel compile(const Operands& o) const override {
    const auto s = unshared_shape(o.in[0].type.shape, o.in[1].type.shape[2], p_);
    return
        [s, x = o.in[0].f32(), w = o.in[1].f32(), bias = o.in.size() > 2 ? o.in[2].f32() : nullptr, y = o.out[0].f32(),
         scratch = o.scratch](const StepContext&) { kernels::unshared_conv(s, x, w, bias, y, scratch); };
  }

 private:
  UnsharedConv2d p_;
};

}  // namespace

Shape unshared_weights(const Shape& x, std::int64_t out, const UnsharedConv2d& p) {
  if (x.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(x));
  if (out < 1 || p.kernel_h < 1 || p.kernel_w < 1 || p.stride_h < 1 || p.stride_w < 1 || p.pad_h < 0 || p.pad_w < 0)
    bad_input("kernels, strides and outputs are 1 or more, padding is 0 or more");
  if (p.kernel_h > x[2] + 2 * std::int64_t{p.pad_h} || p.kernel_w > x[3] + 2 * std::int64_t{p.pad_w})
    bad_input("a window of {}x{} does not fit images {}", p.kernel_h, p.kernel_w, to_string(x));
  const auto s = unshared_shape(x, out, p);
  return {s.out_h(), s.out_w(), out, s.window()};
}

Value unshared_conv2d(Graph& g, Value x, Value w, Value bias, const UnsharedConv2d& p) {
  std::vector<Value> in{x, w};
  if (bias) in.push_back(bias);
  return g.add_one(std::make_shared<UnsharedConvolution>(p), in);
}

}  // namespace echelon::ops
