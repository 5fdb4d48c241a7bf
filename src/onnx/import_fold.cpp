// Nodes whose inputs are all known are computed here, in double precision: shapes, positions, masks, transposed
// weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/checked.h"
#include "onnx/import_numbers.h"

namespace echelon::onnx {
namespace {

struct Binary {
  std::string_view op;
  double (*apply)(double, double, bool whole);
  bool truth = false;
};
constexpr auto binary_folds = std::to_array<Binary>({
    {"Add", [](double a, double b, bool) { return a + b; }},
    {"Sub", [](double a, double b, bool) { return a - b; }},
    {"Mul", [](double a, double b, bool) { return a * b; }},
    {"Div", [](double a, double b, bool whole) { return whole ? (b == 0 ? 0 : std::trunc(a / b)) : a / b; }},
    {"Pow", [](double a, double b, bool) { return std::pow(a, b); }},
    {"Mod", [](double a, double b, bool) { return b == 0 ? 0 : std::fmod(a, b); }},
    {"Max", [](double a, double b, bool) { return std::max(a, b); }},
    {"Min", [](double a, double b, bool) { return std::min(a, b); }},
    {"Equal", [](double a, double b, bool) { return a == b ? 1.0 : 0.0; }, true},
    {"Less", [](double a, double b, bool) { return a < b ? 1.0 : 0.0; }, true},
    {"Greater", [](double a, double b, bool) { return a > b ? 1.0 : 0.0; }, true},
    {"LessOrEqual", [](double a, double b, bool) { return a <= b ? 1.0 : 0.0; }, true},
    {"GreaterOrEqual", [](double a, double b, bool) { return a >= b ? 1.0 : 0.0; }, true},
    {"And", [](double a, double b, bool) { return a != 0 && b != 0 ? 1.0 : 0.0; }, true},
    {"Or", [](double a, double b, bool) { return a != 0 || b != 0 ? 1.0 : 0.0; }, true},
});

struct Unary {
  std::string_view op;
  double (*apply)(double);
};
constexpr auto unary_folds = std::to_array<Unary>({
    {"Neg", [](double x) { return -x; }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Abs", [](double x) { return std::fabs(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
});

Known fold_gather(NodeImport& n) {
  const Numbers x = argument(n, 0);
  const Tensor& places = n.constant(1);
  const int axis = n.axis(n.integer("axis", 0), static_cast<int>(x.dims.size()));
  const auto a = static_cast<std::size_t>(axis);
  Numbers y{x.element, {}, {}};
  y.dims.assign(x.dims.begin(), x.dims.begin() + axis);
  y.dims.insert(y.dims.end(), places.dims.begin(), places.dims.end());
  y.dims.insert(y.dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  count_of(n, y.dims);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < a; ++i) outer *= x.dims[i];
  for (std::size_t i = a + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  const Ints indices = read_integers(places);
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t index : indices) {
      const std::int64_t i = index < 0 ? index + x.dims[a] : index;
      if (i < 0 || i >= x.dims[a]) n.refuse(fmt::format("index {} is outside of {}", index, x.dims[a]));
      const auto first = x.at.begin() + (o * x.dims[a] + i) * inner;
      y.at.insert(y.at.end(), first, first + inner);
    }
  return as_known(y);
}

Known fold_slice(NodeImport& n) {
  const Numbers x = argument(n, 0);
  Ints dims = x.dims, strides = strides_of(x.dims);
  std::set<std::size_t> seen;
  std::int64_t start = 0;
  for (const SliceRange& range : slice_ranges(n)) {
    const auto a = static_cast<std::size_t>(n.axis(range.axis, static_cast<int>(dims.size())));
    const std::int64_t extent = x.dims[a], step = std::clamp(range.step, -extent - 1, extent + 1);
    if (!seen.insert(a).second) n.refuse("an axis twice");
    if (extent == 0) continue;
    if (step == 0) n.refuse("a step of nothing");
    const auto inside = [&](std::int64_t v, std::int64_t least, std::int64_t most) {
      return std::clamp(v < 0 ? (v < -extent ? least : v + extent) : v, least, most);
    };
    const std::int64_t begin = inside(range.begin, 0, step > 0 ? extent : extent - 1),
                       end = inside(range.end, step > 0 ? 0 : -1, extent);
    dims[a] = std::max<std::int64_t>(0, step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step);
    start += begin * strides[a];
    strides[a] *= step;
  }
  Numbers y{x.element, dims, {}};
  count_of(n, dims, x.at.size());
  walk(dims, strides, start, [&](std::int64_t at) { y.at.push_back(number_at(n, x, at)); });
  return as_known(y);
}

Known fold_transpose(NodeImport& n) {
  const Numbers x = argument(n, 0);
  Ints perm = n.list("perm", {});
  if (perm.empty())
    for (std::size_t i = x.dims.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  if (perm.size() != x.dims.size()) n.refuse("an order of other dimensions");
  const Ints own = strides_of(x.dims);
  Ints dims, strides;
  for (const std::int64_t p : perm) {
    const auto a = static_cast<std::size_t>(n.axis(p, static_cast<int>(x.dims.size())));
    dims.push_back(x.dims[a]), strides.push_back(own[a]);
  }
  Numbers y{x.element, dims, {}};
  count_of(n, dims, x.at.size());
  walk(dims, strides, 0, [&](std::int64_t at) { y.at.push_back(number_at(n, x, at)); });
  return as_known(y);
}

Known fold_concat(NodeImport& n) {
  Numbers y = argument(n, 0);
  const auto a = static_cast<std::size_t>(n.axis(n.integer("axis", 0), static_cast<int>(y.dims.size())));
  for (std::size_t k = 1; k < n.node().in.size(); ++k) {
    const Numbers b = argument(n, k);
    if (b.dims.size() != y.dims.size()) n.refuse("tensors of different ranks");
    Numbers joined{y.element, y.dims, {}};
    joined.dims[a] += b.dims[a];
    count_of(n, joined.dims, y.at.size() + b.at.size());
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < a; ++i) outer *= y.dims[i];
    for (std::size_t i = a + 1; i < y.dims.size(); ++i) inner *= y.dims[i];
    const auto piece = [&](const Numbers& x, std::int64_t o) {
      const std::int64_t each = x.dims[a] * inner;
      if (static_cast<std::size_t>((o + 1) * each) > x.at.size()) n.refuse("tensors that do not fit each other");
      joined.at.insert(joined.at.end(), x.at.begin() + o * each, x.at.begin() + (o + 1) * each);
    };
    for (std::int64_t o = 0; o < outer; ++o) piece(y, o), piece(b, o);
    y = std::move(joined);
  }
  return as_known(y);
}

// The same numbers in another shape.
Known with_dims(NodeImport& n, Ints dims) {
  Tensor t = n.constant(0);
  std::int64_t known = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && i < t.dims.size() && n.node().type == "Reshape") dims[i] = t.dims[i];
    if (dims[i] > 0) known = checked_multiply(known, dims[i], "the new shape");
  }
  for (std::int64_t& d : dims)
    if (d == -1) d = known == 0 ? 0 : t.elements() / known;
  if (count_of(n, dims, static_cast<std::size_t>(t.elements())) != t.elements())
    n.refuse("a shape for another number of elements");
  t.dims = std::move(dims);
  return {.kind = Known::Kind::constant, .tensor = std::make_shared<const Tensor>(std::move(t))};
}

Ints axes_of(NodeImport& n) { return n.has(1) ? n.integers(1) : n.list("axes", {}); }

Known fold_squeeze(NodeImport& n) {
  const Ints dims = n.constant(0).dims, axes = axes_of(n);
  Ints kept;
  std::vector<bool> drop(dims.size(), axes.empty());
  for (const std::int64_t a : axes) drop[static_cast<std::size_t>(n.axis(a, static_cast<int>(dims.size())))] = true;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!drop[i] || dims[i] != 1) kept.push_back(dims[i]);
  return with_dims(n, kept);
}

Known fold_unsqueeze(NodeImport& n) {
  const Ints dims = n.constant(0).dims, axes = axes_of(n);
  const std::size_t rank = dims.size() + axes.size();
  if (rank > 16) n.refuse("too many dimensions");
  std::vector<bool> one(rank, false);
  for (const std::int64_t a : axes) one[static_cast<std::size_t>(n.axis(a, static_cast<int>(rank)))] = true;
  Ints out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(one[i] || next >= dims.size() ? 1 : dims[next++]);
  return with_dims(n, out);
}

Known fold_range(NodeImport& n) {
  const double first = number_at(n, argument(n, 0), 0), limit = number_at(n, argument(n, 1), 0),
               step = number_at(n, argument(n, 2), 0);
  const double count = step == 0 ? -1 : std::ceil((limit - first) / step);
  if (!(count >= 0 && count <= static_cast<double>(most_folded))) n.refuse("a range that cannot be");
  Numbers y{n.constant(0).element, {static_cast<std::int64_t>(count)}, {}};
  for (std::int64_t i = 0; i < y.dims[0]; ++i) y.at.push_back(first + static_cast<double>(i) * step);
  return as_known(y);
}

Known fold_fill(NodeImport& n) {
  Numbers value{Element::f32, {}, {0}};
  if (const auto it = n.node().attributes.find("value"); it != n.node().attributes.end() && !it->second.tensor.empty())
    value = numbers_of(it->second.tensor[0]);
  if (value.at.size() != 1) n.refuse("its value is not one number");
  Numbers y{value.element, n.integers(0), {}};
  y.at.assign(static_cast<std::size_t>(count_of(n, y.dims)), value.at[0]);
  return as_known(y);
}

Known fold_where(NodeImport& n) {
  const Numbers c = argument(n, 0), a = argument(n, 1), b = argument(n, 2);
  Numbers y{a.element, joint_dims(n, joint_dims(n, c.dims, a.dims), b.dims), {}};
  const auto cs = broadcast(n, c, y.dims), as = broadcast(n, a, y.dims), bs = broadcast(n, b, y.dims);
  for (std::size_t i = 0; i < cs.size(); ++i) y.at.push_back(cs[i] != 0 ? as[i] : bs[i]);
  return as_known(y);
}

Known fold_expand(NodeImport& n) {
  const Numbers x = argument(n, 0);
  Numbers y{x.element, joint_dims(n, x.dims, n.integers(1)), {}};
  y.at = broadcast(n, x, y.dims);
  return as_known(y);
}

Known fold_cast(NodeImport& n) {
  Numbers x = argument(n, 0);
  const std::int64_t to = n.integer("to", 1);
  x.element = to == 1 || to == 10 || to == 11 ? Element::f32 : to == 9 ? Element::boolean : Element::i64;
  for (double& v : x.at) v = is_real(x.element) ? v : x.element == Element::boolean ? (v != 0 ? 1 : 0) : std::trunc(v);
  return as_known(x);
}

Known fold_constant(NodeImport& n) {
  for (const auto& [name, a] : n.node().attributes) {
    if (!a.tensor.empty())
      return {.kind = Known::Kind::constant, .tensor = std::make_shared<const Tensor>(a.tensor[0])};
    if (name == "value_float") return as_known({Element::f32, {}, {a.real}});
    if (name == "value_int") return as_known({Element::i64, {}, {static_cast<double>(a.integer)}});
    if (name == "value_ints")
      return as_known({Element::i64, {std::ssize(a.integers)}, {a.integers.begin(), a.integers.end()}});
    if (name == "value_floats") return as_known({Element::f32, {std::ssize(a.reals)}, a.reals});
  }
  n.refuse("a constant of a kind that is not read");
}

struct Folding {
  std::string_view op;
  Known (*fold)(NodeImport&);
};
constexpr auto foldings = std::to_array<Folding>({
    {"Constant", fold_constant},
    {"Identity", [](NodeImport& n) { return n.in(0); }},
    {"Gather", fold_gather},
    {"Slice", fold_slice},
    {"Transpose", fold_transpose},
    {"Concat", fold_concat},
    {"Reshape", [](NodeImport& n) { return with_dims(n, n.integers(1)); }},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {"Range", fold_range},
    {"ConstantOfShape", fold_fill},
    {"Where", fold_where},
    {"Expand", fold_expand},
    {"Cast", fold_cast},
});

// The extents of a value: the batch is the stand-in.
void fold_shape(NodeImport& n) {
  const Known& x = n.in(0);
  Numbers y{Element::i64, {}, {}};
  const std::int64_t rank = x.rank(), first = n.integer("start", 0), last = n.integer("end", rank);
  const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  for (std::int64_t i = inside(first); i < inside(last); ++i)
    y.at.push_back(static_cast<double>(x.extent(static_cast<int>(i))));
  y.dims = {std::ssize(y.at)};
  n.out(as_known(y));
}

}  // namespace

bool fold(NodeImport& n) {
  const std::string& op = n.node().type;
  if (op == "Shape") return fold_shape(n), true;
  for (std::size_t i = 0; i < n.node().in.size(); ++i)
    if (n.has(i) && !n.is_constant(i)) return false;
  for (const Folding& f : foldings)
    if (f.op == op) return n.out(f.fold(n)), true;
  for (const Unary& u : unary_folds)
    if (u.op == op) {
      Numbers x = argument(n, 0);
      for (double& v : x.at) v = u.apply(v);
      return n.out(as_known(x)), true;
    }
  for (const Binary& b : binary_folds)
    if (b.op == op && n.has(0) && n.has(1)) {
      const Numbers x = argument(n, 0), y = argument(n, 1);
      const bool whole = !is_real(x.element) && !is_real(y.element);
      Numbers z{b.truth ? Element::boolean : whole ? Element::i64 : Element::f32, joint_dims(n, x.dims, y.dims), {}};
      const auto xs = broadcast(n, x, z.dims), ys = broadcast(n, y, z.dims);
      for (std::size_t i = 0; i < xs.size(); ++i) z.at.push_back(b.apply(xs[i], ys[i], whole));
      return n.out(as_known(z)), true;
    }
  return false;
}

}  // namespace echelon::onnx
