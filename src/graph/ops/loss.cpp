#include "graph/ops/loss.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "graph/ops/class_scores.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/slices.h"
#include "kernels/loss/loss.h"

namespace echelon::ops {

namespace {

std::size_t extent(const Type& t, int axis) { return static_cast<std::size_t>(t.shape[axis]); }

void check(const std::int32_t* targets, std::size_t rows, std::size_t classes) {
  if (const auto bad = kernels::check_targets(targets, rows, classes); bad >= 0)
    bad_input("cross_entropy: target {} in row {}, but there are {} classes (0 to {})", targets[bad], bad, classes,
              classes - 1);
}

// In a graph that trains, the softmax is computed once: output 2 is its gradient for a loss of weight one, written over
// the logits where nobody else reads them.
class CrossEntropy : public Op {
 public:
  CrossEntropy(float smoothing, ClassWeighting weighting, bool training)
      : smoothing_(smoothing), weighting_(std::move(weighting)), training_(training) {}
  std::string_view name() const override { return is_plain() ? "cross_entropy" : "weighted_cross_entropy"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() != 2 || in[1].dtype != DType::i32 || in[1].elements() != in[0].shape[0])
      bad_input("needs logits [rows, classes] and whole-number targets [rows], not {} and {}", to_string(in[0]),
                to_string(in[1]));
    if (!weighting_.classes.empty() && static_cast<std::int64_t>(weighting_.classes.size()) != in[0].shape[1])
      bad_input("{} class weights, but {} classes", weighting_.classes.size(), in[0].shape[1]);
    if (smoothing_ != 0 && weighting_.focal_gamma != 0)
      bad_input("label smoothing and a focal factor exclude each other");
    std::vector<Type> out{f32({1}), f32({1})};
    if (training_) out.push_back(f32(in[0].shape));
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    if (!training_) bad_input("a graph that does not train has no gradients");
    return {scale_by(g, node.out[2], d_out[0]), Value{}};
  }
  // Each slice says of its classes what the loss needs to know; the logits stay where they are.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (!(q.arrives[0] == Cut{1})) return {};
    std::vector<kernels::ClassPart> parts;
    const std::int64_t classes = q.in[0].shape[1];
    for (int s = 0; s < q.slices; ++s) {
      const std::int64_t begin = part_begin(classes, q.slices, s), end = part_begin(classes, q.slices, s + 1);
      parts.push_back({static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)});
    }
    return SliceRule{
        .in = {{1}, {}},
        .out = {},
        .op = [parts,
               *this](int s) { return class_scores_op(parts[static_cast<std::size_t>(s)], smoothing_, training_); },
        .join =
            [parts, *this](Graph& g, const std::vector<std::vector<Value>>& outputs, const std::vector<Value>& in) {
              std::vector<Value> scores;
              for (const auto& of_slice : outputs) scores.push_back(of_slice[0]);
              const Classified c = join_class_scores(g, scores, in[1], parts, smoothing_);
              return std::vector<Value>{c.loss, c.correct};
            }};
  }
  int overwrites(int out) const override { return out == 2 ? 0 : -1; }
  Kernel compile(const Operands& o) const override {
    float* d = training_ ? o.out[2].f32() : nullptr;
    if (!is_plain()) return compile_weighted(o, d);
    return [smoothing = smoothing_, logits = o.in[0].f32(), targets = o.in[1].i32(), rows = extent(o.in[0].type, 0),
            classes = extent(o.in[0].type, 1), loss = o.out[0].f32(), correct = o.out[1].f32(), d](const StepContext&) {
      check(targets, rows, classes);
      const kernels::ClassLoss r = d ? kernels::cross_entropy_grad(logits, targets, rows, classes, smoothing, 1.0f, d)
                                     : kernels::cross_entropy(logits, targets, rows, classes, smoothing);
      *loss = static_cast<float>(r.loss);
      *correct = static_cast<float>(r.correct);
    };
  }

 private:
  bool is_plain() const { return weighting_.classes.empty() && weighting_.focal_gamma == 0; }
  Kernel compile_weighted(const Operands& o, float* d) const {
    return [smoothing = smoothing_, weighting = weighting_, logits = o.in[0].f32(), targets = o.in[1].i32(),
            rows = extent(o.in[0].type, 0), classes = extent(o.in[0].type, 1), loss = o.out[0].f32(),
            correct = o.out[1].f32(), d](const StepContext&) {
      check(targets, rows, classes);
      const kernels::RowWeighting w{weighting.classes.empty() ? nullptr : weighting.classes.data(),
                                    weighting.focal_gamma};
      const kernels::ClassLoss r =
          d ? kernels::weighted_cross_entropy_grad(logits, targets, rows, classes, smoothing, w, 1.0f, d)
            : kernels::weighted_cross_entropy(logits, targets, rows, classes, smoothing, w);
      *loss = static_cast<float>(r.loss);
      *correct = static_cast<float>(r.correct);
    };
  }

  float smoothing_;
  ClassWeighting weighting_;
  bool training_;
};

class QuantileGrad : public Op {
 public:
  explicit QuantileGrad(std::vector<float> levels) : levels_(std::move(levels)) {}
  std::string_view name() const override { return "quantile_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [levels = levels_, x = o.in[0].f32(), t = o.in[1].f32(), s = o.in[2].f32(), d = o.out[0].f32(),
            rows = static_cast<std::size_t>(o.in[1].type.elements())](const StepContext&) {
      kernels::quantile_loss_grad(x, t, levels.data(), *s, d, rows, levels.size());
    };
  }

 private:
  std::vector<float> levels_;
};

class QuantileLoss : public Op {
 public:
  explicit QuantileLoss(std::vector<float> levels) : levels_(std::move(levels)) {}
  std::string_view name() const override { return "quantile"; }
  std::string detail() const override { return fmt::format("{}", fmt::join(levels_, ", ")); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const auto levels = static_cast<std::int64_t>(levels_.size());
    if (levels == 0) bad_input("needs at least one level between 0 and 1");
    if (in[0].shape.rank() != 2 || in[1].shape.rank() != 2 || in[0].shape[0] != in[1].shape[0] ||
        in[0].shape[1] != in[1].shape[1] * levels)
      bad_input("{} levels of the targets {} need a prediction [rows, targets * levels], not {}", levels,
                to_string(in[1].shape), to_string(in[0].shape));
    return {f32({1})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<QuantileGrad>(levels_), {node.in[0], node.in[1], d_out[0]}), Value{}};
  }
  Kernel compile(const Operands& o) const override {
    return [levels = levels_, x = o.in[0].f32(), t = o.in[1].f32(), loss = o.out[0].f32(),
            rows = static_cast<std::size_t>(o.in[1].type.elements())](const StepContext&) {
      *loss = static_cast<float>(kernels::quantile_loss(x, t, levels.data(), rows, levels.size()));
    };
  }

 private:
  std::vector<float> levels_;
};

class DistanceGrad : public Op {
 public:
  DistanceGrad(Distance kind, float parameter) : kind_(kind), parameter_(parameter) {}
  std::string_view name() const override { return "distance_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [kind = kind_, c = parameter_, x = o.in[0].f32(), t = o.in[1].f32(), s = o.in[2].f32(), d = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext&) {
      switch (kind) {
        case Distance::mse: return kernels::mse_grad(x, t, *s, d, n);
        case Distance::l1: return kernels::l1_grad(x, t, *s, d, n);
        case Distance::huber: return kernels::huber_grad(x, t, c, *s, d, n);
        case Distance::bce_with_logits: return kernels::bce_with_logits_grad(x, t, *s, d, n);
      }
    };
  }

 private:
  Distance kind_;
  float parameter_;
};

class DistanceLoss : public Op {
 public:
  DistanceLoss(Distance kind, float parameter) : kind_(kind), parameter_(parameter) {}
  std::string_view name() const override {
    switch (kind_) {
      case Distance::mse: return "mse";
      case Distance::l1: return "l1";
      case Distance::huber: return "huber";
      case Distance::bce_with_logits: return "bce_with_logits";
    }
    return "?";
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (!(in[0].shape == in[1].shape))
      bad_input("prediction {} and target {} must have one shape", to_string(in[0].shape), to_string(in[1].shape));
    return {f32({1})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<DistanceGrad>(kind_, parameter_), {node.in[0], node.in[1], d_out[0]}), Value{}};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    auto rule = follow_cut(q);
    if (rule) rule->join = add_up_slices;
    return rule;
  }
  Kernel compile(const Operands& o) const override {
    return [kind = kind_, c = parameter_, x = o.in[0].f32(), t = o.in[1].f32(), loss = o.out[0].f32(),
            n = o.in[0].stored()](const StepContext&) {
      auto value = [&]() -> double {
        switch (kind) {
          case Distance::mse: return kernels::mse(x, t, n);
          case Distance::l1: return kernels::l1(x, t, n);
          case Distance::huber: return kernels::huber(x, t, c, n);
          case Distance::bce_with_logits: return kernels::bce_with_logits(x, t, n);
        }
        return 0;
      };
      *loss = static_cast<float>(value());
    };
  }

 private:
  Distance kind_;
  float parameter_;
};

}  // namespace

Classified cross_entropy(Graph& g, Value logits, Value targets, float label_smoothing) {
  return weighted_cross_entropy(g, logits, targets, label_smoothing, {});
}

Classified weighted_cross_entropy(Graph& g, Value logits, Value targets, float label_smoothing,
                                  const ClassWeighting& weighting) {
  const auto out = g.add(std::make_shared<CrossEntropy>(label_smoothing, weighting, g.training()), {logits, targets});
  return {out[0], out[1]};
}

Value quantile_loss(Graph& g, Value x, Value target, const std::vector<float>& levels) {
  return g.add_one(std::make_shared<QuantileLoss>(levels), {x, target});
}

Value distance_loss(Graph& g, Distance kind, Value x, Value target, float parameter) {
  return g.add_one(std::make_shared<DistanceLoss>(kind, parameter), {x, target});
}

}  // namespace echelon::ops
