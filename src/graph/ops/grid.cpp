#include "graph/ops/grid.h"

#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"

namespace echelon::ops {

namespace {

using OfSlices = std::vector<std::vector<Value>>;  // by slice

std::size_t at(int i) { return static_cast<std::size_t>(i); }

OfSlices build_grid(Graph& g, const OfSlices& in, int features, int slices, int columns) {
  const int rows = slices / columns;
  std::vector<Value> x;  // every slice's own features, so that their gradients meet there
  for (int s = 0; s < slices; ++s) {
    g.set_slice(s);
    x.push_back(g.slice_of(in[at(s)][0]) == s ? in[at(s)][0] : copy(g, in[at(s)][0]));
  }
  OfSlices products;  // by slice, and by piece of its outputs
  for (int s = 0; s < slices; ++s) {
    const int column = s % columns;
    const std::vector<Value> pieces(x.begin() + column * rows, x.begin() + (column + 1) * rows);
    g.set_slice(s);
    const Value p = linear(g, concat(g, pieces, features), in[at(s)][1], {});
    products.push_back(split(g, p, features, std::vector<std::int64_t>(at(columns), g.type(p).shape[-1] / columns)));
  }
  OfSlices out;
  for (int s = 0; s < slices; ++s) {
    std::vector<Value> addends;
    for (int column = 0; column < columns; ++column)
      addends.push_back(products[at(s / columns * columns + column)][at(s % columns)]);
    g.set_slice(s);
    const Value y = tree_sum(g, addends);
    out.push_back({in[at(s)].size() > 2 ? add_tail(g, y, in[at(s)][2]) : y});
  }
  return out;
}

}  // namespace

std::optional<SliceRule> grid_rule(const SliceQuestion& q) {
  const int features = q.in[0].shape.rank() - 1;
  const Cut x = q.arrives[0], w = q.arrives[1], grid{.axis = 0, .blocks = 1, .columns = q.columns};
  if (q.columns == 1 || (q.last && w.is_whole()) || q.blocks != 1) return {};
  if (!w.is_whole() && !(w == grid)) return {};
  if (!x.is_whole() && !(x == Cut{features})) return {};
  if (q.in[1].shape[0] % q.slices != 0 || q.in[1].shape[1] % q.slices != 0) return {};
  SliceRule rule{.in = {{features}, grid}, .out = {{features}}};
  if (q.in.size() > 2) rule.in.push_back({0});
  rule.build = [features, slices = q.slices, columns = q.columns](Graph& g, const OfSlices& in) {
    return build_grid(g, in, features, slices, columns);
  };
  return rule;
}

}  // namespace echelon::ops
