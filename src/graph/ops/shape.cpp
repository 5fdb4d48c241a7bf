#include "graph/ops/shape.h"

#include <cstring>

#include "base/checked.h"
#include "graph/attributes.h"
#include "graph/ops/stop_gradient.h"
#include "kernels/relayout.h"

namespace echelon::ops {

namespace {

class Reshape : public Op {
 public:
  explicit Reshape(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "reshape"; }
  bool is_view() const override { return true; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    Shape s = shape_;
    std::int64_t known = 1;
    int open = -1;
    for (int i = 0; i < s.rank(); ++i)
      s[i] < 0 ? void(open = i) : void(known = checked_multiply(known, s[i], "the new shape"));
    if (open >= 0 && known > 0 && in[0].elements() % known == 0) s[open] = in[0].elements() / known;
    if (s.elements() != in[0].elements() || (open >= 0 && s[open] < 0))
      bad_input("{} elements of {} cannot become {}", in[0].elements(), to_string(in[0].shape), to_string(shape_));
    return {Type{in[0].dtype, s}};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {reshape(g, d_out[0], g.type(node.in[0]).shape)};
  }
  // A cut axis stays cut if the new shape has one behind as many elements that is dealt out in the same parts. Axis 0
  // is the batch: what happens to it must not depend on how many samples there are.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const Cut cut = q.arrives[0];
    if (cut.axis < 1) return {};
    const Shape &old = q.in[0].shape, now = infer(q.in)[0].shape;
    const auto before = [](const Shape& s, int axis) { return Shape(s.dims().first(static_cast<std::size_t>(axis))); };
    for (int axis = 1; axis < now.rank(); ++axis) {
      const bool same = now[axis] == old[cut.axis];
      const bool even = cut.blocks == 1 && now[axis] % q.slices == 0 && old[cut.axis] % q.slices == 0;
      if (before(now, axis).elements() != before(old, cut.axis).elements() || !(same || even)) continue;
      const Cut to{axis, cut.blocks};
      return SliceRule{.in = {cut}, .out = {to}, .op = [now, to, slices = q.slices](int slice) {
                         return std::make_shared<Reshape>(part_shape(now, to, slices, slice));
                       }};
    }
    return {};
  }
  Kernel compile(const Operands&) const override { return {}; }

 private:
  Shape shape_;
};

class StopGradient : public Op {
 public:
  std::string_view name() const override { return "stop_gradient"; }
  bool is_view() const override { return true; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0]}; }
  std::vector<Value> gradient(Graph&, const Node&, std::span<const Value>, const std::vector<bool>&) const override {
    return {Value{}};
  }
  Kernel compile(const Operands&) const override { return {}; }
};

// Copies one block of rows for each outer index: what both concat and slice are. Sizes in bytes.
struct Strip {
  std::byte* to;
  const std::byte* from;
  std::size_t outer, bytes, to_stride, from_stride;
  void operator()() const {
    for (std::size_t i = 0; i < outer; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
  }
};

// Bytes of one step along `axis`, and how many outer indices precede it.
std::size_t inner_bytes(const Type& t, int axis) {
  std::size_t n = size_of(t.dtype);
  for (int i = axis + 1; i < t.shape.rank(); ++i) n *= static_cast<std::size_t>(t.shape[i]);
  return n;
}
std::size_t outer_count(const Type& t, int axis) {
  std::size_t n = 1;
  for (int i = 0; i < axis; ++i) n *= static_cast<std::size_t>(t.shape[i]);
  return n;
}

// Channels of an image may be cut and joined in the channel8 layout as long as whole blocks of eight move: seen as
// [N, C/8, H, W, 8], the channel axis is still the second and its extent is C / 8.
Layout strip_layout(std::span<const Type> in, int axis, bool whole_blocks) {
  if (axis != 1) return Layout::plain;
  for (const Type& t : in)
    if (t.shape.rank() != 4 || t.layout != in[0].layout) return Layout::plain;
  if (in[0].layout == Layout::batch8) return Layout::batch8;
  return in[0].layout == Layout::channel8 && whole_blocks ? Layout::channel8 : Layout::plain;
}

// The type as plain memory in which axis 1 can be cut: the blocked layouts seen as what they are.
Type as_strips(const Type& t) {
  const Shape& s = t.shape;
  if (t.layout == Layout::channel8) return {t.dtype, Shape{s[0], s[1] / 8, s[2], s[3] * 8}};
  if (t.layout == Layout::batch8) return {t.dtype, Shape{(s[0] + 7) / 8, s[1], s[2], s[3] * 8}};
  return {t.dtype, s};
}

class Concat : public Op, public WithAttributes {
 public:
  explicit Concat(int axis) : axis_(axis) {}
  std::string_view name() const override { return "concat"; }
  Attributes attributes() const override { return {{"axis", axis_}}; }
  std::string detail() const override { return fmt::format("axis {}", axis_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    Type out = in[0];
    if (axis_ < 0 || axis_ >= out.shape.rank()) bad_input("{} has no axis {}", to_string(out.shape), axis_);
    for (std::size_t k = 1; k < in.size(); ++k) {
      Shape other = in[k].shape;
      if (other.rank() == out.shape.rank()) other[axis_] = out.shape[axis_];
      if (!(other == out.shape) || in[k].dtype != out.dtype)
        bad_input("{} and {} cannot be joined along axis {}", to_string(in[0]), to_string(in[k]), axis_);
      out.shape[axis_] = checked_add(out.shape[axis_], in[k].shape[axis_], "the joined extent");
    }
    out.layout = Layout::plain;
    return {out};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    std::vector<Value> d(node.in.size());
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < d.size(); ++k) {
      const std::int64_t end = begin + g.type(node.in[k]).shape[axis_];
      if (wanted[k]) d[k] = slice(g, d_out[0], axis_, begin, end);
      begin = end;
    }
    return d;
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override { return follow_cut_except(q, axis_); }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override {
    bool whole = true;
    for (const Type& t : in) whole = whole && t.shape.rank() == 4 && t.shape[1] % 8 == 0;
    const Layout l = strip_layout(in, axis_, whole);
    return {std::vector<Layout>(in.size(), l), std::vector<Layout>(out.size(), l)};
  }
  Kernel compile(const Operands& o) const override {
    std::vector<Strip> strips;
    const Type to = as_strips(o.out[0].type);
    std::size_t offset = 0;
    for (const Operand& in : o.in) {
      const Type from = as_strips(in.type);
      const std::size_t bytes = inner_bytes(from, axis_) * static_cast<std::size_t>(from.shape[axis_]);
      strips.push_back({o.out[0].data + offset, in.data, outer_count(from, axis_), bytes,
                        inner_bytes(to, axis_) * static_cast<std::size_t>(to.shape[axis_]), bytes});
      offset += bytes;
    }
    return [strips](const StepContext&) {
      for (const Strip& s : strips) s();
    };
  }

 private:
  int axis_;
};

// Zeroes all but the slice it was cut from: the gradient of slice.
class Unslice : public Op {
 public:
  Unslice(int axis, std::int64_t begin, Shape whole) : axis_(axis), begin_(begin), whole_(whole) {}
  std::string_view name() const override { return "unslice"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {Type{in[0].dtype, whole_}}; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {slice(g, d_out[0], axis_, begin_, begin_ + g.type(node.in[0]).shape[axis_])};
  }
  Kernel compile(const Operands& o) const override {
    const Type &from = o.in[0].type, &to = o.out[0].type;
    const std::size_t step = inner_bytes(to, axis_), bytes = step * static_cast<std::size_t>(from.shape[axis_]);
    const Strip s{
        o.out[0].data + step * static_cast<std::size_t>(begin_), o.in[0].data, outer_count(from, axis_), bytes,
        step * static_cast<std::size_t>(to.shape[axis_]),        bytes};
    return [s, y = o.out[0].data, n = to.bytes()](const StepContext&) {
      std::memset(y, 0, n);
      s();
    };
  }

 private:
  int axis_;
  std::int64_t begin_;
  Shape whole_;
};

class Slice : public Op, public WithAttributes {
 public:
  Slice(int axis, std::int64_t begin, std::int64_t end) : axis_(axis), begin_(begin), end_(end) {}
  std::string_view name() const override { return "slice"; }
  Attributes attributes() const override {
    return {{"axis", axis_}, {"begin", static_cast<double>(begin_)}, {"end", static_cast<double>(end_)}};
  }
  std::string detail() const override { return fmt::format("axis {} [{}, {})", axis_, begin_, end_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    Type out{in[0].dtype, in[0].shape};
    if (axis_ < 0 || axis_ >= out.shape.rank() || begin_ < 0 || begin_ >= end_ || end_ > out.shape[axis_])
      bad_input("{} has no part [{}, {}) along axis {}", to_string(out.shape), begin_, end_, axis_);
    out.shape[axis_] = end_ - begin_;
    return {out};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<Unslice>(axis_, begin_, g.type(node.in[0]).shape), {d_out[0]})};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override { return follow_cut_except(q, axis_); }
  Layouts layouts(std::span<const Type> in, std::span<const Type>) const override {
    const bool whole = in[0].shape.rank() == 4 && in[0].shape[1] % 8 == 0 && begin_ % 8 == 0 && end_ % 8 == 0;
    const Layout l = strip_layout(in, axis_, whole);
    return {{l}, {l}};
  }
  Kernel compile(const Operands& o) const override {
    const Type from = as_strips(o.in[0].type), to = as_strips(o.out[0].type);
    const std::int64_t unit = o.in[0].type.layout == Layout::channel8 ? 8 : 1;
    const std::size_t step = inner_bytes(from, axis_), bytes = step * static_cast<std::size_t>(to.shape[axis_]);
    const Strip s{o.out[0].data,
                  o.in[0].data + step * static_cast<std::size_t>(begin_ / unit),
                  outer_count(to, axis_),
                  bytes,
                  bytes,
                  step * static_cast<std::size_t>(from.shape[axis_])};
    return [s](const StepContext&) { s(); };
  }

 private:
  int axis_;
  std::int64_t begin_, end_;
};

class Relayout : public Op {
 public:
  explicit Relayout(Layout to) : to_(to) {}
  std::string_view name() const override { return "relayout"; }
  std::string detail() const override { return fmt::format("to {}", name_of(to_)); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    Type out = in[0];
    out.layout = to_;
    return {out};
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type>) const override { return {{in[0].layout}, {to_}}; }
  Kernel compile(const Operands& o) const override {
    const Operand &x = o.in[0], &y = o.out[0];
    return [shape = x.type.shape, from = x.type.layout, to = to_, x = x.f32(), y = y.f32()](const StepContext&) {
      kernels::relayout(shape, from, x, to, y);
    };
  }

 private:
  Layout to_;
};

}  // namespace

Value reshape(Graph& g, Value x, Shape shape) { return g.add_one(std::make_shared<Reshape>(shape), {x}); }
Value stop_gradient(Graph& g, Value x) { return g.add_one(std::make_shared<StopGradient>(), {x}); }
Value flatten(Graph& g, Value x) { return reshape(g, x, {g.type(x).shape[0], -1}); }
Value concat(Graph& g, std::vector<Value> xs, int axis) {
  return g.add_one(std::make_shared<Concat>(axis), std::move(xs));
}
Value slice(Graph& g, Value x, int axis, std::int64_t begin, std::int64_t end) {
  return g.add_one(std::make_shared<Slice>(axis, begin, end), {x});
}
Value relayout(Graph& g, Value x, Layout to) { return g.add_one(std::make_shared<Relayout>(to), {x}); }

}  // namespace echelon::ops
