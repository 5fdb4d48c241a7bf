#include "graph/ops/softmax.h"

#include "base/error.h"
#include "kernels/softmax.h"

namespace echelon::ops {

namespace {

struct SoftmaxRows {
  std::size_t rows, cols;
  explicit SoftmaxRows(const Type& t)
      : rows(static_cast<std::size_t>(t.elements() / t.shape[-1])), cols(static_cast<std::size_t>(t.shape[-1])) {}
};

class SoftmaxGrad : public Op {
 public:
  std::string_view name() const override { return "softmax_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 1; }
  Kernel compile(const Operands& o) const override {
    return [r = SoftmaxRows(o.in[0].type), y = o.in[0].f32(), dy = o.in[1].f32(),
            dx = o.out[0].f32()](const StepContext&) { kernels::softmax_grad(y, dy, dx, r.rows, r.cols); };
  }
};

class Softmax : public Op {
 public:
  std::string_view name() const override { return "softmax"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() < 1) bad_input("needs at least one dimension");
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<SoftmaxGrad>(), {node.out[0], d_out[0]})};
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [r = SoftmaxRows(o.in[0].type), x = o.in[0].f32(), y = o.out[0].f32()](const StepContext&) {
      kernels::softmax(x, y, r.rows, r.cols);
    };
  }
};

}  // namespace

Value softmax(Graph& g, Value x) { return g.add_one(std::make_shared<Softmax>(), {x}); }

}  // namespace echelon::ops
