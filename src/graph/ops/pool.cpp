#include "graph/ops/pool.h"

#include <limits>

#include "base/checked.h"
#include "graph/attributes.h"
#include "graph/ops/shape.h"
#include "graph/ops/strips.h"
#include "kernels/pool.h"

namespace echelon::ops {

namespace {

using kernels::PoolKind;
using kernels::PoolShape;

// dx from dy, and for max pooling from the places where forward found the maxima.
class PoolGrad : public Op {
 public:
  PoolGrad(PoolKind kind, const PoolShape& s) : kind_(kind), s_(s) {}
  std::string_view name() const override { return kind_ == PoolKind::max ? "max_pool_grad" : "avg_pool_grad"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(s_.in_shape())}; }
  // The places are kept in the layout that forward had; dy follows them.
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override {
    const Layout l = kind_ == PoolKind::max ? in[1].layout : in[0].layout;
    return {std::vector<Layout>(in.size(), l), std::vector<Layout>(out.size(), l)};
  }
  Kernel compile(const Operands& o) const override {
    const std::byte* places = kind_ == PoolKind::max ? o.in[1].data : nullptr;
    return [s = s_, kind = kind_, layout = o.in[0].type.layout, dy = o.in[0].f32(), places,
            dx = o.out[0].f32()](const StepContext&) { kernels::pool_backward(s, kind, layout, dy, places, dx); };
  }

 private:
  PoolKind kind_;
  PoolShape s_;
};

class Pooling : public Op, public WithAttributes {
 public:
  Pooling(PoolKind kind, const Pool& p) : kind_(kind), p_(p) {}
  std::string_view name() const override { return kind_ == PoolKind::max ? "max_pool" : "avg_pool"; }
  Attributes attributes() const override {
    return {{"kernel_h", p_.kernel_h},
            {"kernel_w", p_.kernel_w},
            {"stride_h", p_.stride_h},
            {"stride_w", p_.stride_w},
            {"pad_h", p_.pad_h},
            {"pad_w", p_.pad_w},
            {"count_padding", kind_ == PoolKind::average_inside ? 0 : 1}};
  }
  std::string detail() const override {
    return fmt::format("{}x{} stride {} pad {}", p_.kernel_h, p_.kernel_w, p_.stride_h, p_.pad_h);
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(in[0].shape));
    const PoolShape s = shape_of(in[0].shape);
    if (const std::string problem = kernels::problem_with(s); !problem.empty())
      bad_input("a window of [{}, {}] does not fit images {}: {}", p_.kernel_h, p_.kernel_w, to_string(in[0].shape),
                problem);
    std::vector<Type> out{f32(s.out_shape())};
    if (kind_ == PoolKind::max) out.push_back({kernels::pool_index_type(s), s.out_shape()});
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    std::vector<Value> in{d_out[0]};
    if (kind_ == PoolKind::max) in.push_back(node.out[1]);
    return {g.add_one(std::make_shared<PoolGrad>(kind_, shape_of(g.type(node.in[0]).shape)), in)};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const std::size_t outputs = kind_ == PoolKind::max ? 2 : 1;
    if (q.arrives[0] == Cut{1}) return follow_cut(q, outputs);
    if (!(q.arrives[0] == Cut{rows_axis}) && !(q.arrives[0] == Cut{columns_axis})) return {};
    // What is outside counts as zeros in an average, and never wins a maximum.
    if (kind_ == PoolKind::average_inside && (strip_axis(q) == rows_axis ? p_.pad_h : p_.pad_w) > 0) return {};
    Pool in_rows = p_, in_columns = p_;
    in_rows.pad_h = in_columns.pad_w = 0;
    const Shape out = infer(q.in)[0].shape;
    return strips_rule(
        q, {out[rows_axis], {p_.kernel_h, p_.stride_h, p_.pad_h}, std::make_shared<Pooling>(kind_, in_rows)},
        {out[columns_axis], {p_.kernel_w, p_.stride_w, p_.pad_w}, std::make_shared<Pooling>(kind_, in_columns)},
        outputs, kind_ == PoolKind::max ? std::numeric_limits<float>::lowest() : 0);
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  Kernel compile(const Operands& o) const override {
    std::byte* places = kind_ == PoolKind::max ? o.out[1].data : nullptr;
    return [s = shape_of(o.in[0].type.shape), kind = kind_, layout = o.in[0].type.layout, x = o.in[0].f32(),
            y = o.out[0].f32(), places](const StepContext&) { kernels::pool_forward(s, kind, layout, x, y, places); };
  }

 private:
  PoolShape shape_of(const Shape& x) const {
    return {.n = x[0],
            .c = x[1],
            .h = x[2],
            .w = x[3],
            .kh = p_.kernel_h,
            .kw = p_.kernel_w,
            .stride_h = p_.stride_h,
            .stride_w = p_.stride_w,
            .pad_h = p_.pad_h,
            .pad_w = p_.pad_w};
  }
  PoolKind kind_;
  Pool p_;
};

}  // namespace

Value max_pool(Graph& g, Value x, const Pool& p) { return g.add(std::make_shared<Pooling>(PoolKind::max, p), {x})[0]; }

Value avg_pool(Graph& g, Value x, const Pool& p) {
  return g.add_one(std::make_shared<Pooling>(p.count_padding ? PoolKind::average : PoolKind::average_inside, p), {x});
}

Value global_avg_pool(Graph& g, Value x) {
  const Shape s = g.type(x).shape;
  if (s.rank() != 4) bad_input("layer '{}': global pooling needs images [N, C, H, W], not {}", g.layer(), to_string(s));
  const Pool whole{.kernel_h = checked_narrow<int>(s[2], "the height of the pooled images"),
                   .kernel_w = checked_narrow<int>(s[3], "the width of the pooled images")};
  return reshape(g, avg_pool(g, x, whole), {s[0], s[1]});
}

}  // namespace echelon::ops
