#include "onnx/whole_weights.h"

#include <algorithm>
#include <map>

#include "graph/slicing.h"

namespace echelon::onnx {

namespace {

// By the name of the whole; of each in the order of the slices.
using Wholes = std::map<std::string, std::vector<SlicedParameter>>;

Wholes by_whole(std::span<const SlicedParameter> slices) {
  Wholes wholes;
  for (const SlicedParameter& s : slices) wholes[s.whole].push_back(s);
  for (auto& [name, parts] : wholes) std::ranges::sort(parts, {}, &SlicedParameter::slice);
  return wholes;
}

std::int64_t product(const Shape& shape, int from, int to) {
  std::int64_t all = 1;
  for (int i = from; i < to; ++i) all *= shape[i];
  return all;
}

// Calls f(begin in the whole, begin in the part, how many) for numbers that lie side by side in both.
template <typename F>
void for_each_run(const SlicedParameter& s, int slices, const F& f) {
  const Shape part = part_shape(s.shape, s.cut, slices, s.slice);
  if (s.cut.columns > 1) {
    const std::int64_t row = s.slice / s.cut.columns * part[0], column = s.slice % s.cut.columns * part[1];
    for (std::int64_t r = 0; r < part[0]; ++r) f((row + r) * s.shape[1] + column, r * part[1], part[1]);
    return;
  }
  const int axis = s.cut.axis, blocks = s.cut.blocks;
  const std::int64_t outer = product(s.shape, 0, axis), inner = product(s.shape, axis + 1, s.shape.rank());
  const std::int64_t whole_block = s.shape[axis] / blocks, part_block = part[axis] / blocks;
  const std::int64_t begin = part_begin(whole_block, slices, s.slice);
  for (std::int64_t k = 0; k < outer * blocks; ++k)
    f((k * whole_block + begin) * inner, k * part_block * inner, part_block * inner);
}

}  // namespace

std::vector<NamedWeights> join_slices(std::span<const NamedWeights> weights, std::span<const SlicedParameter> slices) {
  const Wholes wholes = by_whole(slices);
  std::map<std::string, const SlicedParameter*> slice_named;
  for (const auto& [name, parts] : wholes)
    for (const SlicedParameter& part : parts) slice_named[part.name] = &part;
  std::map<std::string, std::size_t> place;  // of a whole in `all`
  std::vector<NamedWeights> all;
  for (const NamedWeights& w : weights) {
    const auto found = slice_named.find(w.name);
    if (found == slice_named.end()) {
      all.push_back(w);
      continue;
    }
    const SlicedParameter& slice = *found->second;
    const auto [at, is_new] = place.emplace(slice.whole, all.size());
    if (is_new) all.push_back({slice.whole, slice.shape, {}});
    if (w.numbers.empty()) continue;
    std::vector<float>& joined = all[at->second].numbers;
    joined.resize(static_cast<std::size_t>(slice.shape.elements()));
    for_each_run(slice, static_cast<int>(wholes.at(slice.whole).size()),
                 [&](std::int64_t in_whole, std::int64_t in_part, std::int64_t count) {
                   std::copy_n(w.numbers.begin() + in_part, count, joined.begin() + in_whole);
                 });
  }
  return all;
}

std::vector<NamedWeights> cut_into_slices(std::span<const NamedWeights> whole,
                                          std::span<const SlicedParameter> slices) {
  const Wholes wholes = by_whole(slices);
  std::vector<NamedWeights> all;
  for (const NamedWeights& w : whole) {
    const auto found = wholes.find(w.name);
    if (found == wholes.end()) {
      all.push_back(w);
      continue;
    }
    const auto count = static_cast<int>(found->second.size());
    for (const SlicedParameter& slice : found->second) {
      const Shape shape = part_shape(slice.shape, slice.cut, count, slice.slice);
      NamedWeights part{slice.name, shape, std::vector<float>(static_cast<std::size_t>(shape.elements()))};
      for_each_run(slice, count, [&](std::int64_t in_whole, std::int64_t in_part, std::int64_t n) {
        std::copy_n(w.numbers.begin() + in_whole, n, part.numbers.begin() + in_part);
      });
      all.push_back(std::move(part));
    }
  }
  return all;
}

}  // namespace echelon::onnx
