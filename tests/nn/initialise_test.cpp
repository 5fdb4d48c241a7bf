// First values: their statistics, their independence of each other and of order, and orthogonality.
#include "nn/initialise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/support/says.h"

namespace echelon::nn {
namespace {

std::vector<float> values(const Parameter& p, std::uint64_t seed = 1) {
  std::vector<float> out(static_cast<std::size_t>(p.shape.elements()));
  initialise(p, seed, out);
  return out;
}

Parameter parameter(Shape shape, Init init, const std::string& name = "fc.weight") {
  init.fan_in = shape[1];
  init.fan_out = shape[0];
  return {.name = name, .shape = shape, .init = init};
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments(const std::vector<float>& v) {
  Moments m;
  for (float x : v) m.mean += x, m.largest = std::max(m.largest, std::abs(static_cast<double>(x)));
  m.mean /= static_cast<double>(v.size());
  for (float x : v) m.deviation += (x - m.mean) * (x - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(v.size()));
  return m;
}

TEST(Initialise, HasTheDeviationOfItsRule) {
  const double in = 300, out = 200;
  const std::vector<std::pair<Init, double>> rules = {
      {normal(0.02f), 0.02},
      {uniform(0.3f), 0.3 / std::sqrt(3)},
      {xavier_uniform(), std::sqrt(2 / (in + out))},
      {xavier_normal(2), 2 * std::sqrt(2 / (in + out))},
      {he_uniform(), std::sqrt(2 / in)},
      {he_normal(), std::sqrt(2 / in)},
      {torch_default(300), 1 / std::sqrt(3 * in)},
  };
  for (const auto& [rule, expected] : rules) {
    const Parameter p = parameter({200, 300}, rule);
    const Moments m = moments(values(p));
    EXPECT_NEAR(m.deviation / expected, 1, 0.02) << static_cast<int>(rule.kind);
    EXPECT_NEAR(deviation(p.init) / expected, 1, 1e-6) << static_cast<int>(rule.kind);
    EXPECT_NEAR(m.mean / expected, 0, 0.02) << static_cast<int>(rule.kind);
  }
}

TEST(Initialise, UniformStaysWithinItsBound) {
  EXPECT_LE(moments(values(parameter({50, 70}, uniform(0.25f)))).largest, 0.25);
  EXPECT_LE(moments(values(parameter({50, 70}, torch_default(100)))).largest, 0.1);
}

TEST(Initialise, ConstantIsConstant) {
  for (float x : values(parameter({3, 5}, constant(0.75f)))) EXPECT_EQ(x, 0.75f);
}

TEST(Initialise, OrthogonalRowsOrColumns) {
  for (const Shape& shape : {Shape{7, 20}, Shape{20, 7}, Shape{16, 16}, Shape{1, 5}, Shape{6, 3, 2, 2}}) {
    const float gain = 1.5f;
    const auto v = values(parameter(shape, orthogonal(gain)));
    const std::int64_t rows = shape[0], columns = shape.elements() / rows;
    const bool wide = rows <= columns;
    const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    auto at = [&](std::int64_t k, std::int64_t i) {
      return static_cast<double>(v[static_cast<std::size_t>(wide ? k * columns + i : i * columns + k)]);
    };
    for (std::int64_t a = 0; a < count; ++a)
      for (std::int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (std::int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
        EXPECT_NEAR(dot, a == b ? gain * gain : 0, 1e-5) << to_string(shape) << " " << a << " " << b;
      }
  }
}

TEST(Initialise, DependsOnSeedAndNameAlone) {
  const auto one = values(parameter({10, 10}, he_normal(), "a.weight"));
  EXPECT_EQ(one, values(parameter({10, 10}, he_normal(), "a.weight")));
  EXPECT_NE(one, values(parameter({10, 10}, he_normal(), "b.weight")));
  EXPECT_NE(one, values(parameter({10, 10}, he_normal(), "a.weight"), 2));
}

TEST(Initialise, FillsATableLikeItsParameters) {
  Graph first, second;
  const Parameter a = parameter({4, 3}, he_uniform(), "a"), b = parameter({5, 5}, normal(1), "b");
  first.parameter(a), first.parameter(b);
  second.parameter(b), second.parameter(a);  // another order, another place, the same numbers
  for (const Graph* graph : {&first, &second}) {
    ParameterTable table;
    table.include(*graph);
    std::vector<float> flat(table.floats());
    initialise(table, 9, flat);
    for (const Parameter& p : {a, b}) {
      const auto& entry = table.find(p.name);
      const std::vector<float> found(flat.begin() + static_cast<std::ptrdiff_t>(entry.offset),
                                     flat.begin() + static_cast<std::ptrdiff_t>(entry.offset + entry.size));
      EXPECT_EQ(found, values(p, 9)) << p.name;
    }
  }
}

TEST(Initialise, RulesByName) {
  for (std::string_view name : init_names()) EXPECT_NO_THROW(init_by_name(name, 1));
  EXPECT_EQ(init_by_name("orthogonal", 2).value, 2);
  EXPECT_TRUE(test::says(test::complaint_of([] { init_by_name("kaiming", 1); }), "he_normal"));
}

}  // namespace
}  // namespace echelon::nn
