#include "graph/ops/slices.h"

#include <cstring>
#include <numeric>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/shape.h"
#include "kernels/tree_sum.h"

namespace echelon::ops {

namespace {

class TreeSum : public Op {
 public:
  std::string_view name() const override { return "tree_sum"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in.empty()) bad_input("needs at least one value");
    for (const Type& t : in)
      if (t.dtype != DType::f32 || !(t.shape == in[0].shape))
        bad_input("{} and {} cannot be added up", to_string(in[0]), to_string(t));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph&, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return std::vector<Value>(node.in.size(), d_out[0]);
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    std::vector<const float*> in;
    for (const Operand& operand : o.in) in.push_back(operand.f32());
    return [in, out = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) { kernels::tree_sum(in, out, n); };
  }
};

class Split : public Op, public WithAttributes {
 public:
  Split(int axis, std::vector<std::int64_t> extents) : axis_(axis), extents_(std::move(extents)) {}
  std::string_view name() const override { return "split"; }
  Attributes attributes() const override { return {{"axis", axis_}}; }
  std::string detail() const override { return fmt::format("axis {} into {}", axis_, extents_.size()); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& whole = in[0].shape;
    const std::int64_t sum = std::accumulate(extents_.begin(), extents_.end(), std::int64_t{0});
    if (axis_ < 0 || axis_ >= whole.rank() || sum != whole[axis_])
      bad_input("{} cannot be cut along axis {} into parts that have {} together", to_string(whole), axis_, sum);
    std::vector<Type> out;
    for (std::int64_t extent : extents_) {
      out.push_back({in[0].dtype, whole});
      out.back().shape[axis_] = extent;
    }
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    std::vector<Value> parts(d_out.begin(), d_out.end());
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i]) parts[i] = scale(g, node.out[i], 0);  // nobody asked this part: it adds nothing
    return {concat(g, parts, axis_)};
  }
  Kernel compile(const Operands& o) const override {
    const Type& whole = o.in[0].type;
    std::size_t inner = size_of(whole.dtype), outer = 1;  // bytes of one index along the axis
    for (int i = 0; i < axis_; ++i) outer *= static_cast<std::size_t>(whole.shape[i]);
    for (int i = axis_ + 1; i < whole.shape.rank(); ++i) inner *= static_cast<std::size_t>(whole.shape[i]);
    struct Part {
      std::byte* to;
      std::size_t bytes;
    };
    std::vector<Part> parts;
    for (std::size_t i = 0; i < extents_.size(); ++i)
      parts.push_back({o.out[i].data, inner * static_cast<std::size_t>(extents_[i])});
    return [parts, from = o.in[0].data, outer](const StepContext&) {
      const std::byte* next = from;
      for (std::size_t i = 0; i < outer; ++i)
        for (const Part& part : parts) {
          std::memcpy(part.to + i * part.bytes, next, part.bytes);
          next += part.bytes;
        }
    };
  }

 private:
  int axis_;
  std::vector<std::int64_t> extents_;
};

}  // namespace

Value tree_sum(Graph& g, std::vector<Value> xs) { return g.add_one(std::make_shared<TreeSum>(), std::move(xs)); }
std::vector<Value> add_up_slices(Graph& g, const std::vector<std::vector<Value>>& outputs, const std::vector<Value>&) {
  std::vector<Value> addends;
  for (const auto& of_slice : outputs) addends.push_back(of_slice[0]);
  return {tree_sum(g, addends)};
}
bool is_tree_sum(const Op& op) { return dynamic_cast<const TreeSum*>(&op) != nullptr; }

std::vector<Value> split(Graph& g, Value x, int axis, const std::vector<std::int64_t>& extents) {
  return g.add(std::make_shared<Split>(axis, extents), {x});
}

}  // namespace echelon::ops
