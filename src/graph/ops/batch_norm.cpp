#include "graph/ops/batch_norm.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/batch_norm_strips.h"
#include "graph/ops/norm.h"
#include "kernels/norm/batch_norm.h"

namespace echelon::ops {

namespace {

using kernels::BatchNormShape;

BatchNormShape shape_of(const Type& x) {
  const Shape& s = x.shape;
  return {.n = s[0], .c = s[1], .pixels = s.rank() == 4 ? s[2] * s[3] : 1};
}

std::string detail_of(BatchNormExtras e) { return e.residual ? "add relu" : e.relu ? "relu" : ""; }

void check(std::span<const Type> in, std::size_t vectors) {
  const Shape& x = in[0].shape;
  if (x.rank() != 4 && x.rank() != 2) bad_input("needs [N, C, H, W] or [N, C], not {}", to_string(x));
  for (std::size_t i = 1; i <= vectors; ++i)
    if (!(in[i].shape == Shape{x[1]}))
      bad_input("input {} does not fit parameters {}", to_string(x), to_string(in[i].shape));
}

// Channels are normalised each for itself: whoever has some of them needs nothing of the others.
std::optional<SliceRule> by_channels(const SliceQuestion& q, std::size_t outputs) {
  if (!(q.arrives[0] == Cut{1})) return {};
  SliceRule rule{.in = std::vector<Cut>(q.in.size(), {0}), .out = std::vector<Cut>(outputs, {0})};
  rule.in[0] = rule.out[0] = {1};
  return rule;
}

class BatchNormGrad : public Op {
 public:
  explicit BatchNormGrad(BatchNormExtras e) : e_(e) {}
  bool plain() const { return !e_.relu && !e_.residual; }
  std::string_view name() const override { return "batch_norm_grad"; }
  std::string detail() const override { return detail_of(e_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    std::vector<Type> out{f32(in[0].shape), f32(in[1].shape), f32(in[1].shape)};
    if (e_.residual) out.push_back(f32(in[0].shape));
    return out;
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  // dy dies here: in the residual case it becomes the residual's gradient, else x's.
  int overwrites(int out) const override { return out == (e_.residual ? 3 : 0) ? 5 : -1; }
  Kernel compile(const Operands& o) const override {
    kernels::BatchNormBackward a{.x = o.in[0].f32(),
                                 .gamma = o.in[1].f32(),
                                 .beta = o.in[2].f32(),
                                 .mean = o.in[3].f32(),
                                 .rstd = o.in[4].f32(),
                                 .dy = o.in[5].f32(),
                                 .relu = e_.relu,
                                 .dx = o.out[0].f32(),
                                 .dgamma = o.out[1].f32(),
                                 .dbeta = o.out[2].f32()};
    if (e_.residual) a.y = o.in[6].f32(), a.d_residual = o.out[3].f32();
    return [a, s = shape_of(o.in[0].type), layout = o.in[0].type.layout](const StepContext&) {
      kernels::batch_norm_backward(s, layout, a);
    };
  }

 private:
  BatchNormExtras e_;
};

// (x, gamma, beta [, residual]) -> (y, mean, rstd, mean and variance as contributions to the running statistics)
class BatchNormTraining : public Op {
 public:
  BatchNormTraining(float eps, BatchNormExtras e) : eps_(eps), e_(e) {}
  bool plain() const { return !e_.relu && !e_.residual; }
  float eps() const { return eps_; }
  std::string_view name() const override { return "batch_norm"; }
  std::string detail() const override { return detail_of(e_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    check(in, 2);
    const Type channels = f32({in[0].shape[1]});
    return {f32(in[0].shape), channels, channels, channels, channels};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    invariant(plain(), "gradients are taken before fusion");
    return g.add(std::make_shared<BatchNormGrad>(BatchNormExtras{}),
                 {node.in[0], node.in[1], node.in[2], node.out[1], node.out[2], d_out[0]});
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const Cut x = q.arrives[0];
    if (!(x == Cut{2}) && !(x == Cut{3})) return by_channels(q, 5);  // strips of rows or of columns
    return SliceRule{.in = {x, {}, {}},
                     .out = {x, {Cut::inner}, {Cut::inner}, {}, {}},
                     .build = [eps = eps_](Graph& g, const std::vector<std::vector<Value>>& in) {
                       return batch_norm_in_strips(g, in, eps);
                     }};
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int out) const override { return out == 0 && e_.residual ? 3 : -1; }
  Kernel compile(const Operands& o) const override {
    const auto channels = static_cast<std::size_t>(o.in[0].type.shape[1]);
    float *mean = o.out[1].f32(), *mean_part = o.out[3].f32(), *variance_part = o.out[4].f32();
    const kernels::BatchNormForward a{.x = o.in[0].f32(),
                                      .gamma = o.in[1].f32(),
                                      .beta = o.in[2].f32(),
                                      .residual = e_.residual ? o.in[3].f32() : nullptr,
                                      .relu = e_.relu,
                                      .eps = eps_,
                                      .y = o.out[0].f32(),
                                      .mean = mean,
                                      .rstd = o.out[2].f32(),
                                      .variance = variance_part};
    const BatchNormShape s = shape_of(o.in[0].type);
    const double count = static_cast<double>(s.n * s.pixels), unbiased = count > 1 ? count / (count - 1) : 1;
    return [=, layout = o.in[0].type.layout](const StepContext& step) {
      kernels::batch_norm_forward(s, layout, a);
      // The running statistics move towards the mean over shards, each weighted by its samples.
      const float variance_share = static_cast<float>(unbiased * step.share);
      for (std::size_t c = 0; c < channels; ++c)
        mean_part[c] = mean[c] * step.share, variance_part[c] *= variance_share;
    };
  }

 private:
  float eps_;
  BatchNormExtras e_;
};

// (x, gamma, beta, running mean, running variance [, residual]) -> y
class BatchNormInference : public Op, public WithAttributes {
 public:
  BatchNormInference(float eps, BatchNormExtras e) : eps_(eps), e_(e) {}
  bool plain() const { return !e_.relu && !e_.residual; }
  float eps() const { return eps_; }
  std::string_view name() const override { return "batch_norm_inference"; }
  Attributes attributes() const override { return {{"eps", double{eps_}}}; }
  std::string detail() const override { return detail_of(e_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    check(in, 4);
    return {f32(in[0].shape)};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (!(q.arrives[0] == Cut{2})) return by_channels(q, 1);
    return SliceRule{.in = {{2}, {}, {}, {}, {}}, .out = {{2}}};
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  Kernel compile(const Operands& o) const override {
    const kernels::BatchNormInference a{.x = o.in[0].f32(),
                                        .gamma = o.in[1].f32(),
                                        .beta = o.in[2].f32(),
                                        .mean = o.in[3].f32(),
                                        .variance = o.in[4].f32(),
                                        .residual = e_.residual ? o.in[5].f32() : nullptr,
                                        .relu = e_.relu,
                                        .eps = eps_,
                                        .y = o.out[0].f32()};
    return [a, s = shape_of(o.in[0].type), layout = o.in[0].type.layout](const StepContext&) {
      kernels::batch_norm_inference(s, layout, a);
    };
  }

 private:
  float eps_;
  BatchNormExtras e_;
};

}  // namespace

bool is_plain_batch_norm(const Op& op) {
  const auto* t = dynamic_cast<const BatchNormTraining*>(&op);
  const auto* i = dynamic_cast<const BatchNormInference*>(&op);
  return (t && t->plain()) || (i && i->plain());
}

std::shared_ptr<const Op> batch_norm_with(const Op& plain, BatchNormExtras extras) {
  if (const auto* t = dynamic_cast<const BatchNormTraining*>(&plain))
    return std::make_shared<BatchNormTraining>(t->eps(), extras);
  return std::make_shared<BatchNormInference>(dynamic_cast<const BatchNormInference&>(plain).eps(), extras);
}

bool is_plain_batch_norm_grad(const Op& op) {
  const auto* g = dynamic_cast<const BatchNormGrad*>(&op);
  return g && g->plain();
}

std::shared_ptr<const Op> batch_norm_grad_with(const Op&, BatchNormExtras extras) {
  return std::make_shared<BatchNormGrad>(extras);
}

Value batch_norm(Graph& g, Value x, Value gamma, Value beta, Value running_mean, Value running_var, float eps) {
  if (!g.training())
    return g.add_one(std::make_shared<BatchNormInference>(eps, BatchNormExtras{}),
                     {x, gamma, beta, running_mean, running_var});
  const auto out = g.add(std::make_shared<BatchNormTraining>(eps, BatchNormExtras{}), {x, gamma, beta});
  g.set_contribution(running_mean, out[3]);
  g.set_contribution(running_var, out[4]);
  return out[0];
}

}  // namespace echelon::ops
