#include "nn/initialise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/normal_block.h"
#include "base/random.h"

namespace echelon::nn {
namespace {

using Kind = Init::Kind;

struct Rule {
  std::string_view name;
  Kind kind;
};
constexpr std::array<Rule, 8> rules{{{"constant", Kind::constant},
                                     {"normal", Kind::normal},
                                     {"uniform", Kind::uniform},
                                     {"xavier_uniform", Kind::xavier_uniform},
                                     {"xavier_normal", Kind::xavier_normal},
                                     {"he_uniform", Kind::he_uniform},
                                     {"he_normal", Kind::he_normal},
                                     {"orthogonal", Kind::orthogonal}}};
constexpr auto names = [] {
  std::array<std::string_view, rules.size()> list{};
  for (std::size_t i = 0; i < rules.size(); ++i) list[i] = rules[i].name;
  return list;
}();

// Streams of parameters live on a shard that no training step has.
Stream stream_of(const Parameter& parameter, std::uint64_t seed) {
  return Stream({seed, 0, ~0u, stream_layer(parameter.name.c_str())});
}

void fill_uniform(const Stream& stream, float bound, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const auto words = stream.block(static_cast<std::uint32_t>(i / 4));
    for (std::size_t k = 0; k < std::min<std::size_t>(4, out.size() - i); ++k)
      out[i + k] = (static_cast<float>(words[k] >> 8) * 0x1p-23f - 1) * bound;
  }
}

void fill_normal(const Stream& stream, float deviation, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const auto four = normal_block(stream, static_cast<std::uint32_t>(i / 4));
    for (std::size_t k = 0; k < std::min<std::size_t>(4, out.size() - i); ++k) out[i + k] = four[k] * deviation;
  }
}

// Takes from `v` its part along `u`, a unit vector.
void remove_part(std::span<double> v, std::span<const double> u) {
  double dot = 0;
  for (std::size_t i = 0; i < v.size(); ++i) dot += v[i] * u[i];
  for (std::size_t i = 0; i < v.size(); ++i) v[i] -= dot * u[i];
}

// Gaussian vectors made orthonormal by Gram-Schmidt, each pass done twice so that the angles are right to the last bits
// (Giraud et al. 2005). The result is uniform over the orthogonal group.
void fill_orthogonal(const Stream& stream, const Shape& shape, float gain, std::span<float> out) {
  const auto rows = static_cast<std::size_t>(shape[0]);
  const std::size_t columns = out.size() / std::max<std::size_t>(rows, 1);
  const std::size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> basis(vectors * length);
  for (std::size_t i = 0; i < basis.size(); ++i) basis[i] = stream.normal(i);
  auto vector = [&](std::size_t k) { return std::span(basis).subspan(k * length, length); };
  for (std::size_t k = 0; k < vectors; ++k) {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < k; ++j) remove_part(vector(k), vector(j));
    double square = 0;
    for (double x : vector(k)) square += x * x;
    for (double& x : vector(k)) x /= std::sqrt(square);
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      out[r * columns + c] = gain * static_cast<float>(rows <= columns ? vector(r)[c] : vector(c)[r]);
}

}  // namespace

Init constant(float value) { return {Kind::constant, value}; }
Init normal(float deviation) { return {Kind::normal, deviation}; }
Init uniform(float bound) { return {Kind::uniform, bound}; }
Init xavier_uniform(float gain) { return {Kind::xavier_uniform, gain}; }
Init xavier_normal(float gain) { return {Kind::xavier_normal, gain}; }
Init he_uniform(float gain) { return {Kind::he_uniform, gain}; }
Init he_normal(float gain) { return {Kind::he_normal, gain}; }
Init orthogonal(float gain) { return {Kind::orthogonal, gain}; }

Init torch_default(std::int64_t fan_in) {
  return uniform(static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)))));
}

std::span<const std::string_view> init_names() { return names; }

Init init_by_name(std::string_view name, float value) {
  for (const Rule& rule : rules)
    if (rule.name == name) return {rule.kind, value};
  bad_input("there is no initialiser '{}'; there are {}", name, fmt::join(names, ", "));
}

double deviation(const Init& init) {
  const double value = init.value, in = static_cast<double>(init.fan_in), out = static_cast<double>(init.fan_out);
  switch (init.kind) {
    case Kind::constant: return 0;
    case Kind::normal: return value;
    case Kind::uniform: return value / std::sqrt(3.0);
    case Kind::xavier_uniform:
    case Kind::xavier_normal: return value * std::sqrt(2 / (in + out));
    case Kind::he_uniform:
    case Kind::he_normal: return value * std::sqrt(2 / in);
    case Kind::orthogonal: return value / std::sqrt(std::max(in, out));
  }
  return 0;
}

void initialise(const Parameter& parameter, std::uint64_t seed, std::span<float> out) {
  const Init& init = parameter.init;
  const Stream stream = stream_of(parameter, seed);
  switch (init.kind) {
    case Kind::constant: std::fill(out.begin(), out.end(), init.value); return;
    case Kind::normal:
    case Kind::xavier_normal:
    case Kind::he_normal: fill_normal(stream, static_cast<float>(deviation(init)), out); return;
    case Kind::uniform: fill_uniform(stream, init.value, out); return;
    case Kind::xavier_uniform:
    case Kind::he_uniform: fill_uniform(stream, static_cast<float>(deviation(init) * std::sqrt(3.0)), out); return;
    case Kind::orthogonal: fill_orthogonal(stream, parameter.shape, init.value, out); return;
  }
}

void initialise(const ParameterTable& table, std::uint64_t seed, std::span<float> flat) {
  for (const auto& entry : table.entries()) initialise(entry.parameter, seed, flat.subspan(entry.offset, entry.size));
}

}  // namespace echelon::nn
