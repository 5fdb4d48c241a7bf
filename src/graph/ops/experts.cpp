#include "graph/ops/experts.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/attributes.h"
#include "graph/ops/slices.h"
#include "kernels/experts.h"
#include "kernels/gemm/gemm.h"
#include "kernels/reduce.h"

namespace echelon::ops {

namespace {

using kernels::Experts;
using kernels::Slots;

std::size_t unsign(std::int64_t n) { return static_cast<std::size_t>(n); }

class RouteGrad : public Op {
 public:
  explicit RouteGrad(std::size_t top) : top_(top) {}
  std::string_view name() const override { return "route_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    const Shape& s = o.in[0].type.shape;
    return [e = Experts{.rows = unsign(s[0]), .experts = unsign(s[1]), .top = top_}, p = o.in[0].f32(),
            choice = o.in[1].i32(), d = o.in[2].f32(),
            dp = o.out[0].f32()](const StepContext&) { kernels::route_grad(e, p, choice, d, dp); };
  }

 private:
  std::size_t top_;
};

// probabilities -> slots, gates, load, choices
class Route : public Op, public WithAttributes {
 public:
  Route(int top, std::int64_t capacity) : top_(top), capacity_(capacity) {}
  std::string_view name() const override { return "route"; }
  Attributes attributes() const override { return {{"top", top_}, {"capacity", static_cast<double>(capacity_)}}; }
  std::string detail() const override { return fmt::format("top {} capacity {}", top_, capacity_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& p = in[0].shape;
    if (p.rank() != 2 || top_ < 1 || top_ > 2 || p[1] < top_ || capacity_ < 1)
      bad_input("cannot send {} to {} of so many experts with room for {}", to_string(p), top_, capacity_);
    if (capacity_ > (std::int64_t{1} << 31) / p[1] - 1)
      throw TooLarge("the experts' slots are more than can be counted");
    return {i32({p[0], top_}), f32({p[0], top_}), f32({p[1]}), i32({p[0], top_})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    if (!d_out[1]) return {Value{}};
    return {g.add_one(std::make_shared<RouteGrad>(unsign(top_)), {node.in[0], node.out[3], d_out[1]})};
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return unsign(in[0].shape[1]) * sizeof(std::int32_t);
  }
  Kernel compile(const Operands& o) const override {
    const Shape& s = o.in[0].type.shape;
    return [e = Experts{unsign(s[0]), unsign(s[1]), unsign(top_), unsign(capacity_)}, p = o.in[0].f32(),
            slot = o.out[0].i32(), gate = o.out[1].f32(), load = o.out[2].f32(), choice = o.out[3].i32(),
            places = reinterpret_cast<std::int32_t*>(o.scratch)](const StepContext&) {
      kernels::route(e, p, choice, slot, gate, load, places);
    };
  }

 private:
  int top_;
  std::int64_t capacity_;
};

// The experts [first, first + count) and the room that each has.
struct ExpertRange {
  std::int64_t first = 0, count = 0, capacity = 0;
  Slots slots() const {
    return {static_cast<std::int32_t>(first * capacity), static_cast<std::int32_t>(count * capacity)};
  }
  Attributes attributes() const {
    return {{"first", static_cast<double>(first * capacity)}, {"slots", static_cast<double>(count * capacity)}};
  }
  ExpertRange part(int slices, int slice) const {
    const std::int64_t begin = part_begin(count, slices, slice);
    return {first + begin, part_begin(count, slices, slice + 1) - begin, capacity};
  }
};

Experts routes_of(const Type& slots) {
  return {.rows = unsign(slots.shape[0]), .experts = 0, .top = unsign(slots.shape[1])};
}

// (d_y, slots) -> dx: each row gets back what its copies got.
class DispatchGrad : public Op {
 public:
  explicit DispatchGrad(ExpertRange range) : range_(range) {}
  std::string_view name() const override { return "dispatch_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32({in[1].shape[0], in[0].shape[2]})}; }
  Kernel compile(const Operands& o) const override {
    return [e = routes_of(o.in[1].type), slots = range_.slots(), d = o.in[0].f32(), slot = o.in[1].i32(),
            dx = o.out[0].f32(), width = unsign(o.out[0].type.shape[1])](const StepContext&) {
      kernels::combine(e, slots, slot, nullptr, d, dx, width);
    };
  }

 private:
  ExpertRange range_;
};

class Dispatch : public Op, public WithAttributes {
 public:
  explicit Dispatch(ExpertRange range) : range_(range) {}
  std::string_view name() const override { return "dispatch"; }
  Attributes attributes() const override { return range_.attributes(); }
  std::string detail() const override { return fmt::format("{} experts", range_.count); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() != 2 || in[1].shape.rank() != 2 || in[1].shape[0] != in[0].shape[0])
      bad_input("rows {} do not fit routes {}", to_string(in[0].shape), to_string(in[1].shape));
    return {f32({range_.count, range_.capacity, in[0].shape[1]})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<DispatchGrad>(range_), {d_out[0], node.in[1]}), Value{}};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    return SliceRule{.in = {{}, {}},
                     .out = {{0}},
                     .units = range_.count,
                     .unit = "experts",
                     .op = [range = range_, slices = q.slices](int slice) {
                       return std::make_shared<Dispatch>(range.part(slices, slice));
                     }};
  }
  Kernel compile(const Operands& o) const override {
    return [e = routes_of(o.in[1].type), slots = range_.slots(), x = o.in[0].f32(), slot = o.in[1].i32(),
            y = o.out[0].f32(), width = unsign(o.in[0].type.shape[1])](const StepContext&) {
      kernels::dispatch(e, slots, slot, x, y, width);
    };
  }

 private:
  ExpertRange range_;
};

// (y, slots, gates, d_out) -> dy, d_gates
class CombineGrad : public Op {
 public:
  explicit CombineGrad(ExpertRange range) : range_(range) {}
  std::string_view name() const override { return "combine_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[2].shape)}; }
  Kernel compile(const Operands& o) const override {
    return [e = routes_of(o.in[1].type), slots = range_.slots(), y = o.in[0].f32(), slot = o.in[1].i32(),
            gate = o.in[2].f32(), d = o.in[3].f32(), dy = o.out[0].f32(), d_gate = o.out[1].f32(),
            width = unsign(o.in[0].type.shape[2])](const StepContext&) {
      kernels::combine_grad(e, slots, slot, gate, y, d, dy, d_gate, width);
    };
  }

 private:
  ExpertRange range_;
};

class Combine : public Op, public WithAttributes {
 public:
  explicit Combine(ExpertRange range) : range_(range) {}
  std::string_view name() const override { return "combine"; }
  Attributes attributes() const override { return range_.attributes(); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &y = in[0].shape, &slots = in[1].shape;
    if (y.rank() != 3 || slots.rank() != 2 || !(in[2].shape == slots))
      bad_input("answers {} do not fit routes {} and gates {}", to_string(y), to_string(slots), to_string(in[2].shape));
    return {f32({slots[0], y[2]})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    const auto d = g.add(std::make_shared<CombineGrad>(range_), {node.in[0], node.in[1], node.in[2], d_out[0]});
    return {d[0], Value{}, d[1]};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (!(q.arrives[0] == Cut{0})) return {};
    return SliceRule{.in = {{0}, {}, {}},
                     .out = {{}},
                     .op = [range = range_, slices = q.slices](
                               int slice) { return std::make_shared<Combine>(range.part(slices, slice)); },
                     .join = add_up_slices};
  }
  Kernel compile(const Operands& o) const override {
    return [e = routes_of(o.in[1].type), slots = range_.slots(), y = o.in[0].f32(), slot = o.in[1].i32(),
            gate = o.in[2].f32(), out = o.out[0].f32(), width = unsign(o.in[0].type.shape[2])](const StepContext&) {
      kernels::combine(e, slots, slot, gate, y, out, width);
    };
  }

 private:
  ExpertRange range_;
};

// (x, w, dy) -> dx, dw, db
class ExpertLinearGrad : public Op {
 public:
  explicit ExpertLinearGrad(bool want_dx) : want_dx_(want_dx) {}
  std::string_view name() const override { return "expert_linear_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& w = in[1].shape;
    return {f32(want_dx_ ? in[0].shape : Shape{0}), f32(w), f32({w[0], w[1]})};
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    return (want_dx_ ? 4.0 : 2.0) * static_cast<double>(in[2].elements()) * static_cast<double>(in[1].shape[2]);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return std::max(kernels::gemm_scratch(for_dx(in)), kernels::gemm_scratch(for_dw(in)));
  }
  Kernel compile(const Operands& o) const override {
    const std::vector<Type> in{o.in[0].type, o.in[1].type, o.in[2].type};
    return [dx_product = for_dx(in), dw_product = for_dw(in), want_dx = want_dx_, experts = in[1].shape[0],
            x = o.in[0].f32(), w = o.in[1].f32(), dy = o.in[2].f32(), dx = o.out[0].f32(), dw = o.out[1].f32(),
            db = o.out[2].f32(), scratch = o.scratch](const StepContext&) {
      const std::int64_t rows = dx_product.m, width = dx_product.n, outs = dx_product.k;
      for (std::int64_t e = 0; e < experts; ++e) {
        const float *xe = x + e * rows * width, *we = w + e * outs * width, *de = dy + e * rows * outs;
        if (want_dx) kernels::gemm(dx_product, de, outs, we, width, dx + e * rows * width, width, scratch);
        kernels::gemm(dw_product, de, outs, xe, width, dw + e * outs * width, width, scratch);
        kernels::column_sum(de, unsign(rows), unsign(outs), db + e * outs);
      }
    };
  }

 private:
  static kernels::Gemm for_dx(std::span<const Type> in) {
    return {.m = in[0].shape[1], .n = in[0].shape[2], .k = in[1].shape[1]};
  }
  static kernels::Gemm for_dw(std::span<const Type> in) {
    return {.trans_a = true, .m = in[1].shape[1], .n = in[0].shape[2], .k = in[0].shape[1]};
  }
  bool want_dx_;
};

class ExpertLinear : public Op {
 public:
  std::string_view name() const override { return "expert_linear"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[0].shape, &w = in[1].shape;
    if (x.rank() != 3 || w.rank() != 3 || x[0] != w[0] || x[2] != w[2] || !(in[2].shape == Shape{w[0], w[1]}))
      bad_input("rows {} do not fit weights {} and biases {}", to_string(x), to_string(w), to_string(in[2].shape));
    return {f32({x[0], x[1], w[1]})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    auto d = g.add(std::make_shared<ExpertLinearGrad>(wanted[0]), {node.in[0], node.in[1], d_out[0]});
    if (!wanted[0]) d[0] = {};
    return d;
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    return SliceRule{.in = {{0}, {0}, {0}}, .out = {{0}}, .units = q.in[1].shape[0], .unit = "experts"};
  }
  double flops(std::span<const Type> in, std::span<const Type> out) const override {
    return 2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(in[1].shape[2]);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::linear_scratch(of_one(in[0].shape, in[1].shape));
  }
  Kernel compile(const Operands& o) const override {
    return [s = of_one(o.in[0].type.shape, o.in[1].type.shape), experts = o.in[1].type.shape[0], x = o.in[0].f32(),
            w = o.in[1].f32(), b = o.in[2].f32(), y = o.out[0].f32(), scratch = o.scratch](const StepContext&) {
      for (std::int64_t e = 0; e < experts; ++e)
        kernels::linear_forward(s, x + e * s.rows * s.in, w + e * s.out * s.in, b + e * s.out, y + e * s.rows * s.out,
                                scratch);
    };
  }

 private:
  static kernels::LinearShape of_one(const Shape& x, const Shape& w) { return {.rows = x[1], .in = w[2], .out = w[1]}; }
};

}  // namespace

Routes route(Graph& g, Value probabilities, int top, std::int64_t capacity) {
  const auto out = g.add(std::make_shared<Route>(top, capacity), {probabilities});
  return {out[0], out[1], out[2]};
}

Value dispatch(Graph& g, Value x, Value slots, std::int64_t experts, std::int64_t capacity) {
  return g.add_one(std::make_shared<Dispatch>(ExpertRange{0, experts, capacity}), {x, slots});
}

Value combine(Graph& g, Value y, Value slots, Value gates) {
  const Shape& s = g.type(y).shape;
  const ExpertRange all = s.rank() == 3 ? ExpertRange{0, s[0], s[1]} : ExpertRange{};
  return g.add_one(std::make_shared<Combine>(all), {y, slots, gates});
}

Value expert_linear(Graph& g, Value x, Value w, Value b) {
  return g.add_one(std::make_shared<ExpertLinear>(), {x, w, b});
}

}  // namespace echelon::ops
