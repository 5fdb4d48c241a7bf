// Rows for sums and products, and for what is written out with them: GELU, layer norm, masks, positions.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "onnx/import_rows.h"

namespace echelon::onnx {
namespace {

using Kind = Known::Kind;

constexpr double sqrt_half = 0.70710678118654752440;
bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

// The same value of the network, whatever is still to be done to it.
bool same_source(const Known& a, const Known& b) { return a.layer == b.layer && a.order == b.order; }

// Whether a known tensor marks exactly the keys behind each query: [.., queries, keys] with one mask for all.
bool marks_later_keys(const Tensor& t, const Known& scores, bool (*is_marked)(float)) {
  if (scores.rank() < 2 || t.dims.size() < 2) return false;
  const std::int64_t rows = scores.extent(scores.rank() - 2), cols = scores.extent(scores.rank() - 1);
  if (t.elements() != rows * cols || t.dims.back() != cols) return false;
  const std::vector<float> marks = read_floats(t);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      if (is_marked(marks[static_cast<std::size_t>(i * cols + j)]) != (j > i)) return false;
  return true;
}
bool is_very_low(float x) { return x <= -1e4f; }
bool is_true(float x) { return x != 0; }
bool is_false(float x) { return x == 0; }

// x + t, x of the network, t known.
Known add_constant(NodeImport& n, const Known& x, std::size_t at) {
  const Tensor& t = n.constant(at);
  if (t.elements() == 1) {
    Known y = x;
    const double c = static_cast<double>(read_floats(t)[0]);
    if (y.is(Kind::variance)) return y.kind = Kind::deviation, y.eps = c, y.offset = -1, y;  // -1: no root taken yet
    if (y.is(Kind::erf) && close(c, 1)) return y.kind = Kind::erf_plus_one, y;
    if (!y.is(Kind::value)) y = n.settled(y);
    return y.offset += c, y;
  }
  if (x.is(Kind::scaled)) {
    const std::int64_t width = x.shape[-1];
    if (t.elements() != width) n.refuse("the shift of a layer norm has another width");
    const Known before{.kind = Kind::value, .layer = x.layer, .shape = x.shape};
    const Known y = n.import().layer("layer_norm", n.module({0, 1}), {before}, {{"eps", number(x.eps)}});
    n.import().weight(y.layer, "weight", {width}, read_floats(*x.tensor));
    n.import().weight(y.layer, "bias", {width}, read_floats(t));
    return y;
  }
  const Known v = n.settled(x);
  if (marks_later_keys(t, v, is_very_low)) return n.import().layer("causal_mask", "", {v});
  if (v.rank() == 3 && t.elements() == v.shape[1] * v.shape[2] && t.dims.back() == v.shape[2]) {
    const Known y = n.import().layer("positions", n.module({at}), {v});
    n.import().weight(y.layer, "weight", {v.shape[1], v.shape[2]}, read_floats(t));
    return y;
  }
  n.refuse(fmt::format("adds known numbers [{}] that are no bias, no positions and no causal mask",
                       fmt::join(t.dims, ", ")));
}

Known multiply_constant(NodeImport& n, const Known& x, std::size_t at) {
  const Tensor& t = n.constant(at);
  if (t.elements() == 1) {
    Known y = x.is(Kind::value) ? x : n.settled(x);
    const double c = static_cast<double>(read_floats(t)[0]);
    return y.factor *= c, y.offset *= c, y;
  }
  if (x.is(Kind::normalised) && t.elements() == x.shape[-1]) {
    Known y = x;
    y.kind = Kind::scaled, y.tensor = n.in(at).tensor;
    return y;
  }
  n.refuse(fmt::format("multiplies by known numbers [{}] that are no scale of a layer norm", fmt::join(t.dims, ", ")));
}

void add_in(NodeImport& n) {
  if (n.is_constant(0)) return n.out(add_constant(n, n.in(1), 0));
  if (n.is_constant(1)) return n.out(add_constant(n, n.in(0), 1));
  const Known a = n.value(0), b = n.value(1);
  if (!(a.shape == b.shape)) n.refuse(fmt::format("adds {} and {}", to_string(a.shape), to_string(b.shape)));
  n.out(n.import().layer("add", "", {a, b}));
}

void sub_in(NodeImport& n) {
  if (n.is_constant(1) && n.scalar(1)) {
    Known y = n.in(0).is(Kind::value) ? n.in(0) : n.value(0);
    y.offset -= *n.scalar(1);
    return n.out(y);
  }
  if (n.is_constant(0) && n.scalar(0)) {
    Known y = n.in(1).is(Kind::value) ? n.in(1) : n.value(1);
    y.factor = -y.factor, y.offset = *n.scalar(0) - y.offset;
    return n.out(y);
  }
  if (n.in(1).is(Kind::mean) && same_source(n.in(0), n.in(1))) {
    Known y = n.in(0);
    y.kind = Kind::centred;
    return n.out(y);
  }
  Known b = n.in(1).is(Kind::value) ? n.in(1) : n.value(1);
  b.factor = -b.factor, b.offset = -b.offset;
  const Known a = n.value(0), minus = n.settled(b);
  n.out(n.import().layer("add", "", {a, minus}));
}

void mul_in(NodeImport& n) {
  if (n.is_constant(0)) return n.out(multiply_constant(n, n.in(1), 0));
  if (n.is_constant(1)) return n.out(multiply_constant(n, n.in(0), 1));
  for (const std::size_t i : {0, 1}) {  // x (1 + erf(x / sqrt 2)) is twice the GELU
    const Known &e = n.in(i), &x = n.in(1 - i);
    if (!e.is(Kind::erf_plus_one) || !x.is(Kind::value) || !same_source(e, x) || x.offset != 0) continue;
    const Known before{.kind = Kind::value, .layer = x.layer, .shape = x.shape};
    Known y = n.import().layer("gelu", "", {before});
    y.factor = 2 * x.factor, y.order = x.order;
    return n.out(y);
  }
  Known a = n.value(0), b = n.value(1);
  if (a.shape.elements() < b.shape.elements()) std::swap(a, b);
  // A gate [N, C, 1, 1] becomes [N, C], the beginning of what it is applied to.
  if (!(a.shape == b.shape)) {
    Ints dims(b.shape.dims().begin(), b.shape.dims().end());
    while (dims.size() > 1 && dims.back() == 1) dims.pop_back();
    b = n.reshaped(b, dims);
  }
  n.out(n.import().layer("multiply", "", {a, b}));
}

void div_in(NodeImport& n) {
  if (const auto c = n.scalar(1); c && *c != 0) {
    Known y = n.in(0).is(Kind::value) ? n.in(0) : n.value(0);
    y.factor /= *c, y.offset /= *c;
    return n.out(y);
  }
  const Known &a = n.in(0), &b = n.in(1);
  if (a.is(Kind::centred) && b.is(Kind::deviation) && same_source(a, b) && b.offset == 0) {
    Known y = a;
    y.kind = Kind::normalised, y.eps = b.eps;
    return n.out(y);
  }
  n.refuse("divides by what the network computes, which is read in a layer norm only");
}

void pow_in(NodeImport& n) {
  Known y = n.in(0);
  if (!y.is(Kind::centred) || n.scalar(1) != 2.0) n.refuse("is read as the squares of a layer norm only");
  y.kind = Kind::squares;
  n.out(y);
}

void sqrt_in(NodeImport& n) {
  Known y = n.in(0);
  if (!y.is(Kind::deviation) || y.offset != -1) n.refuse("is read in a layer norm only");
  y.offset = 0;
  n.out(y);
}

void erf_in(NodeImport& n) {
  Known y = n.in(0);
  if (!y.is(Kind::value) || !close(y.factor, sqrt_half) || y.offset != 0) n.refuse("is read in a GELU only");
  y.kind = Kind::erf, y.factor = 1;
  n.out(y);
}

void reduce_mean_in(NodeImport& n) {
  const Known& k = n.in(0);
  Ints axes = n.has(1) ? n.integers(1) : n.list("axes", {});
  for (std::int64_t& a : axes) a = n.axis(a, k.rank());
  std::ranges::sort(axes);
  const bool keep = n.integer("keepdims", 1) != 0;
  if (k.is(Kind::squares) && axes == Ints{k.rank() - 1}) {
    Known y = k;
    y.kind = Kind::variance;
    return n.out(y);
  }
  // Over the last dimension of a value that is also read otherwise: the beginning of a layer norm.
  if (k.is_plain() && keep && axes == Ints{k.rank() - 1} && n.import().readers[n.node().in[0]].size() > 1) {
    Known y = k;
    y.kind = Kind::mean;
    return n.out(y);
  }
  Known x = n.value(0);
  Ints dims(x.shape.dims().begin(), x.shape.dims().end());
  if (x.rank() == 3 && axes == Ints{1}) {
    x = n.import().layer("transpose", "", {x});
  } else if (!((x.rank() == 4 && axes == Ints{2, 3}) || (x.rank() == 3 && axes == Ints{2}))) {
    n.refuse(fmt::format("the mean over dimensions [{}] of {} is not read", fmt::join(axes, ", "), to_string(x.shape)));
  }
  const Known y = n.import().layer("global_avg_pool", "", {x});
  for (const std::int64_t a : axes) dims[static_cast<std::size_t>(a)] = keep ? 1 : 0;
  std::erase(dims, 0);
  n.out(n.reshaped(y, dims));
}

// Scores where a mask says so, else so low that softmax gives nothing; or the other way round.
void where_in(NodeImport& n) {
  for (const std::size_t i : {1, 2}) {
    const auto low = n.scalar(3 - i);
    if (n.is_constant(i) || !low || *low > -1e4) continue;
    const Known scores = n.value(i);
    if (!marks_later_keys(n.constant(0), scores, i == 2 ? is_true : is_false)) break;
    return n.out(n.import().layer("causal_mask", "", {scores}));
  }
  n.refuse("is read as a causal mask only");
}

constexpr auto arithmetic_in = std::to_array<ImportRow>({
    {"Add", add_in},
    {"Sub", sub_in},
    {"Mul", mul_in},
    {"Div", div_in},
    {"Pow", pow_in},
    {"Sqrt", sqrt_in},
    {"Erf", erf_in},
    {"ReduceMean", reduce_mean_in},
    {"Where", where_in},
});

}  // namespace

std::span<const ImportRow> arithmetic_rows() { return arithmetic_in; }

}  // namespace echelon::onnx
