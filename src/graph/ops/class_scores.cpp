#include "graph/ops/class_scores.h"

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/shape.h"

namespace echelon::ops {

namespace {

using kernels::ClassPart;

constexpr auto columns = static_cast<std::int64_t>(kernels::class_score_columns);

kernels::ClassScores* scores_of(const Operand& o) { return reinterpret_cast<kernels::ClassScores*>(o.data); }

// (exps, targets, d_scores) -> d_logits
class ClassScoresGrad : public Op {
 public:
  explicit ClassScoresGrad(ClassPart part) : part_(part) {}
  std::string_view name() const override { return "class_scores_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [part = part_, exps = o.in[0].f32(), targets = o.in[1].i32(), d = scores_of(o.in[2]),
            rows = static_cast<std::size_t>(o.in[0].type.shape[0]),
            dx = o.out[0].f32()](const StepContext&) { kernels::class_scores_grad(exps, targets, d, rows, part, dx); };
  }

 private:
  ClassPart part_;
};

// In a graph that trains, output 1 keeps the exponentials for the gradient, written over the logits where nobody else
// reads them.
class ClassScoresOp : public Op {
 public:
  ClassScoresOp(ClassPart part, float smoothing, bool training)
      : part_(part), smoothing_(smoothing), training_(training) {}
  std::string_view name() const override { return "class_scores"; }
  std::string detail() const override {
    return fmt::format("classes {} to {}", part_.first, part_.first + part_.count - 1);
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& x = in[0].shape;
    if (x.rank() != 2 || x[1] != static_cast<std::int64_t>(part_.count) || in[1].dtype != DType::i32 ||
        in[1].elements() != x[0])
      bad_input("needs logits [rows, {}] and whole-number targets [rows], not {} and {}", part_.count, to_string(in[0]),
                to_string(in[1]));
    std::vector<Type> out{f32({x[0], columns})};
    if (training_) out.push_back(f32(x));
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    if (!training_) bad_input("a graph that does not train has no gradients");
    return {g.add_one(std::make_shared<ClassScoresGrad>(part_), {node.out[1], node.in[1], d_out[0]}), Value{}};
  }
  int overwrites(int out) const override { return out == 1 ? 0 : -1; }
  Kernel compile(const Operands& o) const override {
    return [part = part_, smoothing = smoothing_, logits = o.in[0].f32(), targets = o.in[1].i32(),
            rows = static_cast<std::size_t>(o.in[0].type.shape[0]), scores = scores_of(o.out[0]),
            exps = training_ ? o.out[1].f32() : nullptr](const StepContext&) {
      kernels::class_scores(logits, targets, rows, part, smoothing, scores, exps);
    };
  }

 private:
  ClassPart part_;
  float smoothing_;
  bool training_;
};

// (scores[slices * rows, 5], targets) -> loss, correct and, in a graph that trains, the loss's gradient
class JoinClassScores : public Op {
 public:
  JoinClassScores(std::vector<ClassPart> parts, float smoothing, bool training)
      : parts_(std::move(parts)), smoothing_(smoothing), training_(training) {}
  std::string_view name() const override { return "join_class_scores"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const std::int64_t rows = in[1].elements();
    if (!(in[0].shape == Shape{rows * static_cast<std::int64_t>(parts_.size()), columns}))
      bad_input("{} are not the scores of {} slices for {} targets", to_string(in[0].shape), parts_.size(), rows);
    std::vector<Type> out{f32({1}), f32({1})};
    if (training_) out.push_back(f32(in[0].shape));
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    if (!training_) bad_input("a graph that does not train has no gradients");
    return {scale_by(g, node.out[2], d_out[0]), Value{}};
  }
  Kernel compile(const Operands& o) const override {
    return [parts = parts_, smoothing = smoothing_, scores = scores_of(o.in[0]), targets = o.in[1].i32(),
            rows = static_cast<std::size_t>(o.in[1].type.elements()), loss = o.out[0].f32(), correct = o.out[1].f32(),
            d = training_ ? scores_of(o.out[2]) : nullptr](const StepContext&) {
      const std::size_t classes = parts.back().first + parts.back().count;
      if (const auto bad = kernels::check_targets(targets, rows, classes); bad >= 0)
        bad_input("cross_entropy: target {} in row {}, but there are {} classes (0 to {})", targets[bad], bad, classes,
                  classes - 1);
      const kernels::ClassLoss r = kernels::join_class_scores(scores, targets, rows, parts, smoothing, d);
      *loss = static_cast<float>(r.loss);
      *correct = static_cast<float>(r.correct);
    };
  }

 private:
  std::vector<ClassPart> parts_;
  float smoothing_;
  bool training_;
};

}  // namespace

std::shared_ptr<const Op> class_scores_op(ClassPart part, float label_smoothing, bool training) {
  return std::make_shared<ClassScoresOp>(part, label_smoothing, training);
}

Classified join_class_scores(Graph& g, const std::vector<Value>& scores, Value targets,
                             const std::vector<ClassPart>& parts, float label_smoothing) {
  const auto op = std::make_shared<JoinClassScores>(parts, label_smoothing, g.training());
  const auto out = g.add(op, {concat(g, scores, 0), targets});
  return {out[0], out[1]};
}

}  // namespace echelon::ops
