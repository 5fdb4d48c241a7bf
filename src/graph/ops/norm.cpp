#include "graph/ops/norm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/attributes.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/reduce.h"

namespace echelon::ops {

static_assert(layer_norm_rows_together == kernels::layer_norm_rows);

namespace {

struct NormRows {
  std::size_t rows, cols;
  explicit NormRows(const Type& t)
      : rows(static_cast<std::size_t>(t.elements() / t.shape[-1])), cols(static_cast<std::size_t>(t.shape[-1])) {}
};

// (x, gamma, mean, rstd, dy) -> dx, dgamma, dbeta
class LayerNormGrad : public Op {
 public:
  std::string_view name() const override { return "layer_norm_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    return {f32(in[0].shape), f32(in[1].shape), f32(in[1].shape)};
  }
  int overwrites(int out) const override { return out == 0 ? 4 : -1; }
  Kernel compile(const Operands& o) const override {
    return [r = NormRows(o.in[0].type), x = o.in[0].f32(), gamma = o.in[1].f32(), mean = o.in[2].f32(),
            rstd = o.in[3].f32(), dy = o.in[4].f32(), dx = o.out[0].f32(), dgamma = o.out[1].f32(),
            dbeta = o.out[2].f32()](const StepContext&) {
      kernels::layer_norm_grad(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, r.rows, r.cols);
    };
  }
};

// (x, gamma, mean, rstd, dy) -> dx
class LayerNormRowsGrad : public Op {
 public:
  std::string_view name() const override { return "layer_norm_rows_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    return [r = NormRows(o.in[0].type), x = o.in[0].f32(), gamma = o.in[1].f32(), mean = o.in[2].f32(),
            rstd = o.in[3].f32(), dy = o.in[4].f32(), dx = o.out[0].f32()](const StepContext&) {
      kernels::layer_norm_grad(x, gamma, mean, rstd, dy, dx, nullptr, nullptr, r.rows, r.cols);
    };
  }
};

// (x, mean, rstd, dy[, dgamma, dbeta of the rows before]) -> dgamma, dbeta
class LayerNormParameterGrads : public Op {
 public:
  std::string_view name() const override { return "layer_norm_parameter_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape width{in[0].shape[-1]};
    return {f32(width), f32(width)};
  }
  Kernel compile(const Operands& o) const override {
    const bool goes_on = o.in.size() > 4;
    return
        [r = NormRows(o.in[0].type), x = o.in[0].f32(), mean = o.in[1].f32(), rstd = o.in[2].f32(), dy = o.in[3].f32(),
         before_gamma = goes_on ? o.in[4].f32() : nullptr, before_beta = goes_on ? o.in[5].f32() : nullptr,
         dgamma = o.out[0].f32(), dbeta = o.out[1].f32()](const StepContext&) {
          if (before_gamma != nullptr) {
            std::copy_n(before_gamma, r.cols, dgamma);
            std::copy_n(before_beta, r.cols, dbeta);
          }
          kernels::layer_norm_grad(x, nullptr, mean, rstd, dy, nullptr, dgamma, dbeta, r.rows, r.cols,
                                   before_gamma != nullptr);
        };
  }
};

class LayerNorm : public Op, public WithAttributes {
 public:
  explicit LayerNorm(float eps) : eps_(eps) {}
  std::string_view name() const override { return "layer_norm"; }
  Attributes attributes() const override { return {{"eps", double{eps_}}}; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& x = in[0].shape;
    const Shape width{x.rank() > 0 ? x[-1] : 0};
    if (x.rank() < 1 || !(in[1].shape == width) || !(in[2].shape == width))
      bad_input("input {} does not fit scale {} and shift {}", to_string(x), to_string(in[1].shape),
                to_string(in[2].shape));
    const std::int64_t rows = x.elements() / x[-1];
    return {f32(x), f32({rows}), f32({rows})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return g.add(std::make_shared<LayerNormGrad>(), {node.in[0], node.in[1], node.out[1], node.out[2], d_out[0]});
  }
  bool works_by_rows() const override { return true; }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const Cut cut = q.arrives[0];
    if (cut.axis < 0 || cut.axis == q.in[0].shape.rank() - 1) return {};
    return SliceRule{.in = {cut, {}, {}}, .out = {cut, {Cut::inner}, {Cut::inner}}};
  }
  Kernel compile(const Operands& o) const override {
    return [eps = eps_, r = NormRows(o.in[0].type), x = o.in[0].f32(), gamma = o.in[1].f32(), beta = o.in[2].f32(),
            y = o.out[0].f32(), mean = o.out[1].f32(), rstd = o.out[2].f32()](const StepContext&) {
      kernels::layer_norm(x, gamma, beta, eps, y, mean, rstd, r.rows, r.cols);
    };
  }

 private:
  float eps_;
};

// Weights are small beside activations: plain loops over rows with the library's norms are enough here.
class WeightNormGrad : public Op {
 public:
  std::string_view name() const override { return "weight_norm_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[1].shape)}; }
  Kernel compile(const Operands& o) const override {
    const auto rows = static_cast<std::size_t>(o.in[0].type.shape[0]), cols = o.in[0].stored() / rows;
    return [rows, cols, v = o.in[0].f32(), gain = o.in[1].f32(), dw = o.in[2].f32(), dv = o.out[0].f32(),
            dgain = o.out[1].f32()](const StepContext&) {
      for (std::size_t r = 0; r < rows; ++r) {
        const float *vr = v + r * cols, *dr = dw + r * cols;
        const double norm = std::sqrt(kernels::squared_norm(vr, cols)), along = kernels::dot(vr, dr, cols) / norm;
        dgain[r] = static_cast<float>(along);
        const float a = static_cast<float>(gain[r] / norm), b = static_cast<float>(along / norm);
        for (std::size_t c = 0; c < cols; ++c) dv[r * cols + c] = a * (dr[c] - b * vr[c]);
      }
    };
  }
};

class WeightNorm : public Op {
 public:
  std::string_view name() const override { return "weight_norm"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() < 2 || !(in[1].shape == Shape{in[0].shape[0]}))
      bad_input("directions {} do not fit gains {}", to_string(in[0].shape), to_string(in[1].shape));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return g.add(std::make_shared<WeightNormGrad>(), {node.in[0], node.in[1], d_out[0]});
  }
  Kernel compile(const Operands& o) const override {
    const auto rows = static_cast<std::size_t>(o.in[0].type.shape[0]), cols = o.in[0].stored() / rows;
    return [rows, cols, v = o.in[0].f32(), gain = o.in[1].f32(), w = o.out[0].f32()](const StepContext&) {
      for (std::size_t r = 0; r < rows; ++r) {
        const float a = static_cast<float>(gain[r] / std::sqrt(kernels::squared_norm(v + r * cols, cols)));
        for (std::size_t c = 0; c < cols; ++c) w[r * cols + c] = a * v[r * cols + c];
      }
    };
  }
};

}  // namespace

Value layer_norm(Graph& g, Value x, Value gamma, Value beta, float eps) {
  return g.add(std::make_shared<LayerNorm>(eps), {x, gamma, beta})[0];
}

bool is_layer_norm_grad(const Op& op) { return dynamic_cast<const LayerNormGrad*>(&op) != nullptr; }

Value layer_norm_rows_grad(Graph& g, Value x, Value gamma, Value mean, Value rstd, Value dy) {
  return g.add_one(std::make_shared<LayerNormRowsGrad>(), {x, gamma, mean, rstd, dy});
}

NormParameterGrads layer_norm_parameter_grads(Graph& g, Value x, Value mean, Value rstd, Value dy,
                                              NormParameterGrads before) {
  std::vector<Value> in{x, mean, rstd, dy};
  if (before.gamma) in.insert(in.end(), {before.gamma, before.beta});
  const auto out = g.add(std::make_shared<LayerNormParameterGrads>(), std::move(in));
  return {out[0], out[1]};
}

Value weight_norm(Graph& g, Value v, Value gain) { return g.add_one(std::make_shared<WeightNorm>(), {v, gain}); }

}  // namespace echelon::ops
