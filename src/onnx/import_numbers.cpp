#include "onnx/import_numbers.h"

#include <algorithm>
#include <cmath>

namespace echelon::onnx {

namespace {

std::int64_t to_whole(double v) {
  return std::isnan(v) ? 0 : static_cast<std::int64_t>(std::clamp(v, -9.2e18, 9.2e18));
}

}  // namespace

Numbers numbers_of(const Tensor& t) {
  Numbers n{t.element, t.dims, {}};
  if (is_real(t.element))
    for (const float x : read_floats(t)) n.at.push_back(static_cast<double>(x));
  else
    for (const std::int64_t x : read_integers(t)) n.at.push_back(static_cast<double>(x));
  return n;
}

Known as_known(const Numbers& n) {
  Tensor t;
  if (is_real(n.element)) {
    std::vector<float> x;
    for (const double v : n.at) x.push_back(static_cast<float>(v));
    t = floats("", n.dims, x);
  } else {
    Ints x;
    for (const double v : n.at) x.push_back(to_whole(v));
    t = integers("", n.dims, x);
    if (n.element == Element::boolean) {
      t.element = Element::boolean, t.bytes.clear();
      for (const double v : n.at) t.bytes.push_back(v != 0 ? 1 : 0);
    }
  }
  return {.kind = Known::Kind::constant, .tensor = std::make_shared<const Tensor>(std::move(t))};
}

std::int64_t count_of(NodeImport& n, const Ints& dims, std::size_t made_of) {
  for (const std::int64_t d : dims)
    if (d < 0) n.refuse(fmt::format("{} is no extent", d));
  const std::int64_t count = elements_of(dims);
  if (count > std::max(most_folded, static_cast<std::int64_t>(made_of)))
    n.refuse(fmt::format("would compute a tensor of {} numbers while importing", count));
  return count;
}

Ints strides_of(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Ints joint_dims(NodeImport& n, const Ints& a, const Ints& b) {
  Ints out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto of = [&](const Ints& d) { return i + d.size() < out.size() ? 1 : d[i + d.size() - out.size()]; };
    if (of(a) != of(b) && of(a) != 1 && of(b) != 1) n.refuse("shapes that do not fit each other");
    out[i] = of(a) == 1 ? of(b) : of(a);
  }
  return out;
}

std::vector<double> broadcast(NodeImport& n, const Numbers& x, const Ints& dims) {
  const Ints own = strides_of(x.dims);
  Ints strides(dims.size(), 0);
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i] != 1) strides[i + dims.size() - x.dims.size()] = own[i];
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(count_of(n, dims)));
  walk(dims, strides, 0, [&](std::int64_t at) { out.push_back(x.at[static_cast<std::size_t>(at)]); });
  return out;
}

double number_at(NodeImport& n, const Numbers& x, std::int64_t at) {
  if (at < 0 || static_cast<std::size_t>(at) >= x.at.size()) n.refuse("reads beyond the end of a tensor");
  return x.at[static_cast<std::size_t>(at)];
}

Numbers argument(NodeImport& n, std::size_t i) { return numbers_of(n.constant(i)); }

std::vector<SliceRange> slice_ranges(NodeImport& n) {
  const Ints begins = n.integers(1), ends = n.integers(2);
  Ints axes, steps(begins.size(), 1);
  for (std::size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (n.has(3)) axes = n.integers(3);
  if (n.has(4)) steps = n.integers(4);
  if (ends.size() != begins.size() || axes.size() != begins.size() || steps.size() != begins.size())
    n.refuse("lists of different lengths");
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < axes.size(); ++i) ranges.push_back({axes[i], begins[i], ends[i], steps[i]});
  return ranges;
}

}  // namespace echelon::onnx
