#include "graph/ops/conv.h"

#include "base/checked.h"
#include "graph/attributes.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/slices.h"
#include "graph/ops/strips.h"
#include "kernels/conv/conv.h"

namespace echelon::ops {

namespace {

using kernels::ConvLayouts;
using kernels::ConvShape;

ConvShape conv_shape(const Shape& x, const Shape& w, const Conv2d& p) {
  return {.n = x[0],
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .out_c = w[0],
          .kh = w[2],
          .kw = w[3],
          .stride_h = p.stride_h,
          .stride_w = p.stride_w,
          .pad_h = p.pad_h,
          .pad_w = p.pad_w,
          .dilation_h = p.dilation_h,
          .dilation_w = p.dilation_w,
          .groups = p.groups};
}

// Of a Conv2d or a ConvShape.
template <typename Window>
Attributes attributes_of_window(const Window& w) {
  const auto number = [](auto n) { return static_cast<double>(n); };
  return {{"stride_h", number(w.stride_h)}, {"stride_w", number(w.stride_w)},     {"pad_h", number(w.pad_h)},
          {"pad_w", number(w.pad_w)},       {"dilation_h", number(w.dilation_h)}, {"dilation_w", number(w.dilation_w)},
          {"groups", number(w.groups)}};
}

Kernel without_context(std::function<void()> run) {
  return [run = std::move(run)](const StepContext&) { run(); };
}

double conv_flops(const ConvShape& s) {
  return 2.0 * static_cast<double>(s.n) * static_cast<double>(s.out_h() * s.out_w()) * static_cast<double>(s.weights());
}

// What the transposed convolution gives: the extents of the convolution whose backward pass it is.
ConvShape transposed_shape(const Shape& x, const Shape& w, const Conv2d& p, int more_h, int more_w) {
  if (x.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(x));
  if (w.rank() != 4 || w[0] != x[1])
    bad_input("input {} does not fit weights {}: {} channels arrive, {} are expected", to_string(x), to_string(w), x[1],
              w.rank() == 4 ? w[0] : 0);
  if (p.stride_h < 1 || p.stride_w < 1 || p.pad_h < 0 || p.pad_w < 0 || p.dilation_h < 1 || p.dilation_w < 1)
    bad_input("strides and dilations are 1 or more, padding is 0 or more");
  if (more_h < 0 || more_h >= std::max(p.stride_h, p.dilation_h) || more_w < 0 ||
      more_w >= std::max(p.stride_w, p.dilation_w))
    bad_input("the output's own padding ({} x {}) must be smaller than the stride or the dilation", more_h, more_w);
  const auto extent = [](std::int64_t in, int stride, int pad, int dilation, std::int64_t kernel, int more) {
    const std::int64_t spread = checked_multiply<std::int64_t>(in - 1, stride, "the enlarged image");
    const std::int64_t reach = checked_multiply<std::int64_t>(dilation, kernel - 1, "the kernel's reach");
    return checked_add<std::int64_t>(checked_add<std::int64_t>(spread, reach, "the enlarged image"), 1 + more,
                                     "the enlarged image") -
           2 * std::int64_t{pad};
  };
  const std::int64_t h = extent(x[2], p.stride_h, p.pad_h, p.dilation_h, w[2], more_h);
  const std::int64_t wide = extent(x[3], p.stride_w, p.pad_w, p.dilation_w, w[3], more_w);
  if (h < 1 || wide < 1) bad_input("padding {} x {} leaves nothing of what {} becomes", p.pad_h, p.pad_w, to_string(x));
  const std::int64_t out = checked_multiply<std::int64_t>(w[1], p.groups, "the channels of the weights");
  const ConvShape s = conv_shape({x[0], out, h, wide}, w, p);
  if (const std::string problem = kernels::problem_with(s); !problem.empty())
    bad_input("input {} does not fit weights {}: {}", to_string(x), to_string(w), problem);
  return s;
}

std::shared_ptr<const Op> weights_gradient(const ConvShape& s);

// dx from (dy, w).
class ConvBackwardData : public Op, public WithAttributes {
 public:
  explicit ConvBackwardData(const ConvShape& s) : s_(s) {}
  std::string_view name() const override { return "conv2d_grad_data"; }
  Attributes attributes() const override { return attributes_of_window(s_); }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(s_.in_shape())}; }
  // It is linear in both: the convolution itself, and the gradient of that one's weights.
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const Conv2d p{.stride_h = static_cast<int>(s_.stride_h),
                   .stride_w = static_cast<int>(s_.stride_w),
                   .pad_h = static_cast<int>(s_.pad_h),
                   .pad_w = static_cast<int>(s_.pad_w),
                   .dilation_h = static_cast<int>(s_.dilation_h),
                   .dilation_w = static_cast<int>(s_.dilation_w),
                   .groups = static_cast<int>(s_.groups)};
    return {wanted[0] ? conv2d(g, d_out[0], node.in[1], {}, p) : Value{},
            wanted[1] ? g.add_one(weights_gradient(s_), {d_out[0], node.in[0]}) : Value{}};
  }
  Layouts layouts(std::span<const Type>, std::span<const Type>) const override {
    const ConvLayouts l = kernels::preferred_layouts(s_);
    return {{l.out, Layout::plain}, {l.in}};
  }
  double flops(std::span<const Type>, std::span<const Type>) const override { return conv_flops(s_); }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type> out) const override {
    return kernels::conv_backward_data_scratch(s_, {out[0].layout, in[0].layout});
  }
  Kernel compile(const Operands& o) const override {
    const ConvLayouts l{o.out[0].type.layout, o.in[0].type.layout};
    return without_context(
        kernels::make_conv_backward_data(s_, l, o.in[0].f32(), o.in[1].f32(), o.out[0].f32(), o.scratch));
  }

 private:
  ConvShape s_;
};

// dw, and db if there is a bias, from (x, dy).
class ConvBackwardWeights : public Op {
 public:
  ConvBackwardWeights(const ConvShape& s, bool bias) : s_(s), bias_(bias) {}
  std::string_view name() const override { return "conv2d_grad_weights"; }
  std::vector<Type> infer(std::span<const Type>) const override {
    std::vector<Type> out{f32(s_.weight_shape())};
    if (bias_) out.push_back(f32({s_.out_c}));
    return out;
  }
  Layouts layouts(std::span<const Type>, std::span<const Type> out) const override {
    const ConvLayouts l = kernels::preferred_layouts(s_);
    return {{l.in, l.out}, std::vector<Layout>(out.size(), Layout::plain)};
  }
  double flops(std::span<const Type>, std::span<const Type>) const override { return conv_flops(s_); }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::conv_backward_weights_scratch(s_, {in[0].layout, in[1].layout});
  }
  Kernel compile(const Operands& o) const override {
    const ConvLayouts l{o.in[0].type.layout, o.in[1].type.layout};
    return without_context(kernels::make_conv_backward_weights(s_, l, o.in[0].f32(), o.in[1].f32(), o.out[0].f32(),
                                                               bias_ ? o.out[1].f32() : nullptr, o.scratch));
  }

 private:
  ConvShape s_;
  bool bias_;
};

std::shared_ptr<const Op> weights_gradient(const ConvShape& s) {
  return std::make_shared<ConvBackwardWeights>(s, false);
}

class Convolution : public Op, public WithAttributes {
 public:
  Convolution(const Conv2d& p, bool relu) : p_(p), relu_(relu) {}
  const Conv2d& params() const { return p_; }
  bool relu() const { return relu_; }

  std::string_view name() const override { return relu_ ? "conv2d_relu" : "conv2d"; }
  Attributes attributes() const override { return attributes_of_window(p_); }
  int weights_input() const override { return 1; }
  std::string detail() const override {
    std::string text = fmt::format("stride {} pad {}", p_.stride_h, p_.pad_h);
    if (p_.dilation_h != 1 || p_.dilation_w != 1) text += fmt::format(" dilation {}", p_.dilation_h);
    if (p_.groups != 1) text += fmt::format(" groups {}", p_.groups);
    return text;
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[0].shape, &w = in[1].shape;
    if (x.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(x));
    const std::int64_t expected =
        w.rank() == 4 ? checked_multiply<std::int64_t>(w[1], p_.groups, "the channels of the weights") : 0;
    if (w.rank() != 4 || expected != x[1])
      bad_input("input {} does not fit weights {} in {} group(s): {} channels arrive, {} are expected", to_string(x),
                to_string(w), p_.groups, x[1], expected);
    const ConvShape s = conv_shape(x, w, p_);
    if (const std::string problem = kernels::problem_with(s); !problem.empty())
      bad_input("input {} does not fit weights {}: {}", to_string(x), to_string(w), problem);
    if (in.size() > 2 && !(in[2].shape == Shape{w[0]}))
      bad_input("bias {} does not fit weights {}", to_string(in[2].shape), to_string(w));
    return {f32(s.out_shape())};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    invariant(!relu_, "gradients are taken before fusion");
    const Value x = node.in[0], w = node.in[1], dy = d_out[0];
    const ConvShape s = conv_shape(g.type(x).shape, g.type(w).shape, p_);
    std::vector<Value> d(node.in.size());
    const bool bias = node.in.size() > 2;
    if (wanted[1] || (bias && wanted[2])) {
      const auto dw = g.add(std::make_shared<ConvBackwardWeights>(s, bias), {x, dy});
      d[1] = dw[0];
      if (bias) d[2] = dw[1];
    }
    if (wanted[0]) d[0] = g.add_one(std::make_shared<ConvBackwardData>(s), {dy, w});
    return d;
  }
  // As a linear layer over channels; groups that the slices divide stay among themselves.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (q.strips) {
      const ConvShape s = conv_shape(q.in[0].shape, q.in[1].shape, p_);
      Conv2d in_rows = p_, in_columns = p_;
      in_rows.pad_h = in_columns.pad_w = 0;
      return strips_rule(
          q, {s.out_h(), {s.kh, p_.stride_h, p_.pad_h, p_.dilation_h}, std::make_shared<Convolution>(in_rows, relu_)},
          {s.out_w(), {s.kw, p_.stride_w, p_.pad_w, p_.dilation_w}, std::make_shared<Convolution>(in_columns, relu_)},
          1, 0);
    }
    const bool bias = q.in.size() > 2;
    const std::vector<Cut> with_bias = bias ? std::vector<Cut>{{}, {}, {}} : std::vector<Cut>{{}, {}};
    SliceRule rule{.in = with_bias, .out = {{1}}};
    if (p_.groups > 1) {
      if (p_.groups % q.slices != 0) return {};
      rule.in.assign(rule.in.size(), {0});
      rule.in[0] = {1};
      Conv2d part = p_;
      part.groups /= q.slices;
      rule.op = [part, relu = relu_](int) { return std::make_shared<Convolution>(part, relu); };
      return rule;
    }
    const Cut x = q.arrives[0], w = q.arrives[1];  // weights that are cut already decide
    if (w.is_whole() ? x == Cut{1} : w == Cut{1}) {
      rule.in[0] = rule.in[1] = {1};
      rule.out = {{}};
      rule.join = add_up_slices;
      if (bias) rule.first_only = 2;
      return rule;
    }
    if (q.last && q.in[1].shape[0] < q.slices) return {};
    rule.in.assign(rule.in.size(), {0});
    rule.in[0] = {};
    if (!q.last) rule.units = q.in[1].shape[0], rule.unit = "channels";
    return rule;
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type>) const override {
    const ConvLayouts l = kernels::preferred_layouts(conv_shape(in[0].shape, in[1].shape, p_));
    std::vector<Layout> wanted(in.size(), Layout::plain);
    wanted[0] = l.in;
    return {wanted, {l.out}};
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    return conv_flops(conv_shape(in[0].shape, in[1].shape, p_));
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type> out) const override {
    return kernels::conv_forward_scratch(conv_shape(in[0].shape, in[1].shape, p_), {in[0].layout, out[0].layout});
  }
  Kernel compile(const Operands& o) const override {
    const ConvShape s = conv_shape(o.in[0].type.shape, o.in[1].type.shape, p_);
    return without_context(kernels::make_conv_forward(s, {o.in[0].type.layout, o.out[0].type.layout}, o.in[0].f32(),
                                                      o.in[1].f32(), o.in.size() > 2 ? o.in[2].f32() : nullptr, relu_,
                                                      o.out[0].f32(), o.scratch));
  }

 private:
  Conv2d p_;
  bool relu_;
};

}  // namespace

Value conv2d(Graph& g, Value x, Value w, Value b, const Conv2d& p) {
  std::vector<Value> in{x, w};
  if (b) in.push_back(b);
  return g.add_one(std::make_shared<Convolution>(p, false), in);
}

Value conv_transpose2d(Graph& g, Value x, Value w, Value b, const Conv2d& p, int more_h, int more_w) {
  const ConvShape s = transposed_shape(g.type(x).shape, g.type(w).shape, p, more_h, more_w);
  const Value y = g.add_one(std::make_shared<ConvBackwardData>(s), {x, w});
  return b ? add_channels(g, y, b) : y;
}

std::shared_ptr<const Op> conv2d_with_relu(const Op& op) {
  const auto* c = dynamic_cast<const Convolution*>(&op);
  return c && !c->relu() ? std::make_shared<Convolution>(c->params(), true) : nullptr;
}

}  // namespace echelon::ops
