// Every update rule against an independent one: torch.optim's numbers (tests/optim/golden.txt, written by
// tools/golden_optim.py), and for LARS and LAMB the papers' formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "optim/optim.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

constexpr std::size_t size = 11;

float start(std::size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 64; }
float gradient(std::size_t step, std::size_t i) {
  return static_cast<float>(static_cast<int>((i * 7919 + step * 1047) % 257) - 128) / 128;
}

Optim optim_of(const std::string& words) {
  Options options;
  options.where = "optim";
  std::istringstream in(words);
  std::string word;
  in >> word;
  options.items["name"].value = word;
  while (in >> word) {
    const auto at = word.find('=');
    options.items[word.substr(0, at)].value = std::stod(word.substr(at + 1));
  }
  Problems problems;
  OptionReader reader(options, problems);
  Optim optim = read_optim(reader);
  reader.done();
  problems.throw_if_any(words);
  return optim;
}

TEST(Rules, MoveTheWeightsAsTorchDoes) {
  std::ifstream file(source_path("tests/optim/golden.txt"));
  std::string line, name;
  int cases = 0;
  std::vector<float> w(size), g(size);
  std::unique_ptr<Update> update;
  double lr = 0;
  std::size_t done = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("case ")) {
      name = line.substr(5);
      Optim optim = optim_of(name);
      lr = optim.lr;
      for (std::size_t i = 0; i < size; ++i) w[i] = start(i);
      update = std::make_unique<Update>(std::move(optim.rule), optim.clip, std::vector<TrainedSpan>{{0, size}}, w, g);
      done = 0;
      ++cases;
      continue;
    }
    std::istringstream in(line);
    std::size_t step;
    in >> step;
    while (done < step) {
      ++done;
      // The buffer holds four times the gradient, and the scale makes it the mean again: exact in binary.
      for (std::size_t i = 0; i < size; ++i) g[i] = 4 * gradient(done, i);
      update->run_alone({.number = static_cast<std::int64_t>(done), .lr = lr, .grad_scale = 0.25});
    }
    for (std::size_t i = 0; i < size; ++i) {
      float expected;
      in >> expected;
      EXPECT_NEAR(w[i], expected, 2e-6 * (1 + std::abs(expected))) << name << " step " << step << " weight " << i;
    }
  }
  EXPECT_EQ(cases, 14);
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

TEST(Rules, LarsFollowsThePaper) {
  const double lr = 2, eta = 0.02, mu = 0.8, wd = 0.1;
  Optim optim = optim_of("lars lr=2 eta=0.02 momentum=0.8 weight_decay=0.1");
  std::vector<float> w(size), g(size);
  std::vector<double> rw(size), rg(size), v(size);
  for (std::size_t i = 0; i < size; ++i) rw[i] = w[i] = start(i);
  Update update(std::move(optim.rule), optim.clip, {{0, size}}, w, g);
  for (std::size_t step = 1; step <= 10; ++step) {
    for (std::size_t i = 0; i < size; ++i) rg[i] = g[i] = gradient(step, i);
    const double trust = eta * norm(rw) / (norm(rg) + wd * norm(rw));
    for (std::size_t i = 0; i < size; ++i) {
      v[i] = mu * v[i] + trust * (rg[i] + wd * rw[i]);
      rw[i] -= lr * v[i];
    }
    update.run_alone({.number = static_cast<std::int64_t>(step), .lr = lr});
  }
  for (std::size_t i = 0; i < size; ++i) EXPECT_NEAR(w[i], rw[i], 1e-5);
}

TEST(Rules, LambFollowsThePaper) {
  const double lr = 0.05, b1 = 0.9, b2 = 0.99, eps = 1e-6, wd = 0.1;
  Optim optim = optim_of("lamb lr=0.05 beta2=0.99 weight_decay=0.1");
  std::vector<float> w(size), g(size);
  std::vector<double> rw(size), m(size), v(size), d(size);
  for (std::size_t i = 0; i < size; ++i) rw[i] = w[i] = start(i);
  Update update(std::move(optim.rule), optim.clip, {{0, size}}, w, g);
  for (std::size_t step = 1; step <= 10; ++step) {
    for (std::size_t i = 0; i < size; ++i) {
      const double x = g[i] = gradient(step, i);
      m[i] = b1 * m[i] + (1 - b1) * x;
      v[i] = b2 * v[i] + (1 - b2) * x * x;
      const double n = static_cast<double>(step);
      d[i] = m[i] / (1 - std::pow(b1, n)) / (std::sqrt(v[i] / (1 - std::pow(b2, n))) + eps) + wd * rw[i];
    }
    const double trust = norm(rw) / norm(d);
    for (std::size_t i = 0; i < size; ++i) rw[i] -= lr * trust * d[i];
    update.run_alone({.number = static_cast<std::int64_t>(step), .lr = lr});
  }
  for (std::size_t i = 0; i < size; ++i) EXPECT_NEAR(w[i], rw[i], 1e-5);
}

// A gradient of two directions: the factors of its rows and columns are known, and what is divided by them too.
TEST(Rules, NgSgdDividesByTheFactorsOfRowsAndColumnsAndKeepsTheLength) {
  constexpr std::size_t rows = 24, columns = 36;
  constexpr double large = 100, alpha = 4;
  std::vector<float> g(rows * columns), momentum(g.size()), fisher(g.size());
  const auto along = [&](bool alternates) {  // a direction's part of the gradient
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i)
      sum += g[i] * (alternates && (i / columns + i % columns) % 2 == 1 ? -1.0 : 1.0);
    return sum / std::sqrt(static_cast<double>(g.size()));
  };
  for (std::size_t i = 0; i < g.size(); ++i)
    g[i] = static_cast<float>((large + ((i / columns + i % columns) % 2 == 1 ? -1 : 1)) /
                              std::sqrt(static_cast<double>(g.size())));
  const double length = std::hypot(along(false), along(true));
  float* const slots[] = {momentum.data(), fisher.data()};
  optim_of("ng_sgd alpha=4").rule->precondition({}, {rows, columns, g.data(), slots});

  // What is left of a direction that has the share `square` / samples in a factor with that trace.
  const auto left = [&](double square, double samples, double dimension) {
    const double trace = (large * large + 1) / samples, b = alpha * trace / dimension;
    return b / (b + square / samples);
  };
  const double expected = large * left(large * large, rows, columns) * left(large * large, columns, rows) /
                          (left(1, rows, columns) * left(1, columns, rows));
  EXPECT_NEAR(along(false) / along(true), expected, 0.01 * expected);
  EXPECT_NEAR(std::hypot(along(false), along(true)), length, 1e-3 * length);
}

// The average beside the weights, and the weights as without it, for a rule of every kind.
TEST(Rules, AnAverageFollowsTheWeights) {
  for (const std::string rule : {"sgd lr=0.1", "adam lr=0.01", "lars lr=0.1", "lamb lr=0.01"}) {
    std::vector<float> w(size), g(size), plain_w(size), plain_g(size);
    for (std::size_t i = 0; i < size; ++i) w[i] = plain_w[i] = start(i);
    Optim optim = optim_of(rule + " ema=0.75"), plain = optim_of(rule);
    EXPECT_EQ(optim.rule->slots().back(), "ema");
    const double lr = optim.lr;
    Update update(std::move(optim.rule), {}, {{0, size}}, w, g),
        without(std::move(plain.rule), {}, {{0, size}}, plain_w, plain_g);
    std::vector<double> average(size);
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < size; ++i) g[i] = plain_g[i] = gradient(static_cast<std::size_t>(step), i);
      update.run_alone({.number = step + 1, .lr = lr});
      without.run_alone({.number = step + 1, .lr = lr});
      EXPECT_EQ(w, plain_w) << rule;
      for (std::size_t i = 0; i < size; ++i) {
        average[i] = step == 0 ? w[i] : 0.75 * average[i] + 0.25 * w[i];
        EXPECT_NEAR(update.slots().back().values[i], average[i], 1e-5) << rule << " " << i;
      }
    }
  }
}

TEST(Rules, BadSettingsAreAllReported) {
  EXPECT_THROW(optim_of("adamx"), BadInput);
  EXPECT_THROW(optim_of("adam lr=-1"), BadInput);
  EXPECT_THROW(optim_of("adam beta1=1"), BadInput);
  EXPECT_THROW(optim_of("adam momentum=0.9"), BadInput);
  try {
    optim_of("sgd momentum=0.9 weight_decay=-1 clip_nrom=1");
    FAIL();
  } catch (const BadInput& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("write name = \"momentum\""), std::string::npos) << text;
    EXPECT_NE(text.find("optim.weight_decay must be"), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean 'clip_norm'"), std::string::npos) << text;
  }
  for (const std::string& name : rule_names()) EXPECT_GT(optim_of(name).lr, 0);
}

}  // namespace
}  // namespace echelon
