#pragma once
// Checks an op through the whole machine (shape rule, gradient nodes, passes, memory plan, kernel): its result against
// a plain function of the inputs, its gradient against central differences, and that neither fusion, layouts nor memory
// reuse change anything beyond rounding.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"
#include "graph/gradient.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/loss.h"
#include "graph/program.h"

namespace echelon::test {

struct Given {
  Shape shape;
  float spread = 1, centre = 0;  // numbers are centre + spread * normal
};

// A graph as a function of its parameters "p0", "p1", ...: everything that a test wants differentiated is a parameter.
using Build = std::function<Value(Graph&, const std::vector<Value>&)>;

class OpRun {
 public:
  OpRun(const std::vector<Given>& given, const Build& build, const CompileOptions& options = {}, bool training = true)
      : graph_(training) {
    std::vector<Value> p;
    for (std::size_t i = 0; i < given.size(); ++i)
      p.push_back(graph_.parameter({.name = "p" + std::to_string(i), .shape = given[i].shape}));
    const Value y = build(graph_, p);
    graph_.set_output("y", y);
    // A loss whose gradient is different for each element: the squared distance to fixed numbers.
    const Value target = graph_.input("target", f32(graph_.type(y).shape));
    const Value loss = ops::distance_loss(graph_, ops::Distance::mse, y, target);
    graph_.set_output("loss", loss);
    if (training) differentiate(graph_, loss);
    table_.include(graph_);
    parameters_ = Buffer(table_.floats() * sizeof(float));
    contributions_ = Buffer(table_.floats() * sizeof(float));
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Stream s({.seed = 11, .layer = static_cast<std::uint32_t>(i)});
      auto values = parameter(i);
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = given[i].centre + given[i].spread * s.normal(k);
    }
    plan_ = compile(graph_, options);
    arena_ = Buffer(plan_.memory.arena_bytes);
    executor_ = std::make_unique<Executor>(plan_, table_, parameters_.as<float>(), contributions_.as<float>(),
                                           std::span(arena_.data(), arena_.bytes()));
  }

  std::span<float> parameter(std::size_t i) { return slice(parameters_, i); }
  std::span<float> gradient(std::size_t i) { return slice(contributions_, i); }
  double run() {
    auto target = executor_->input("target");
    auto* t = reinterpret_cast<float*>(target.data());
    const Stream s({.seed = 12});
    for (std::size_t k = 0; k < target.size() / sizeof(float); ++k) t[k] = s.normal(k);
    executor_->run({.seed = 5, .step = 3});
    return *reinterpret_cast<const float*>(executor_->output("loss").data());
  }
  std::vector<float> output() {
    const auto bytes = executor_->output("y");
    const auto* f = reinterpret_cast<const float*>(bytes.data());
    return {f, f + bytes.size() / sizeof(float)};
  }
  const Plan& plan() const { return plan_; }
  std::size_t inputs() const { return graph_.parameters().size(); }

 private:
  std::span<float> slice(Buffer& b, std::size_t i) {
    const auto& e = table_.find("p" + std::to_string(i));
    return b.as<float>().subspan(e.offset, e.size);
  }
  Graph graph_;
  ParameterTable table_;
  Buffer parameters_, contributions_, arena_;
  Plan plan_{Graph(), {}, 0};
  std::unique_ptr<Executor> executor_;
};

// Gradients of all parameters against central differences (a sample of elements where there are many).
inline void check_gradient(const std::vector<Given>& given, const Build& build, double tolerance = 2e-2,
                           float step = 1e-2f) {
  OpRun run(given, build);
  run.run();
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto p = run.parameter(i);
    run.run();
    const std::vector<float> analytic(run.gradient(i).begin(), run.gradient(i).end());
    double scale = 0;
    for (float g : analytic) scale = std::max(scale, std::abs(static_cast<double>(g)));
    const std::size_t stride = std::max<std::size_t>(1, p.size() / 23);
    for (std::size_t k = 0; k < p.size(); k += stride) {
      const float old = p[k];
      p[k] = old + step;
      const double up = run.run();
      p[k] = old - step;
      const double down = run.run();
      p[k] = old;
      const double numeric = (up - down) / (2.0 * step);
      EXPECT_NEAR(analytic[k], numeric, tolerance * (scale + 0.05)) << "input " << i << " element " << k;
    }
  }
  // Whatever the passes do, the numbers stay.
  OpRun bare(given, build, {.fuse = false, .choose_layouts = false, .reuse_memory = false});
  const double loss = run.run(), bare_loss = bare.run();
  EXPECT_NEAR(loss, bare_loss, 1e-4 * std::abs(bare_loss) + 1e-5);
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t k = 0; k < run.gradient(i).size(); ++k) {
      const float a = run.gradient(i)[k], b = bare.gradient(i)[k];
      ASSERT_NEAR(a, b, 1e-3 * std::abs(b) + 2e-4) << "input " << i << " element " << k;
    }
}

}  // namespace echelon::test
