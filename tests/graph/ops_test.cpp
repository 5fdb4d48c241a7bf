// Every op through the whole machine, over odd sizes.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/conv.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"
#include "graph/ops/lookup.h"
#include "graph/ops/loss.h"
#include "graph/ops/norm.h"
#include "graph/ops/pool.h"
#include "graph/ops/recurrent.h"
#include "graph/ops/shape.h"
#include "graph/ops/softmax.h"
#include "tests/graph/op_check.h"

namespace echelon {
namespace {

using test::check_gradient;
using test::Given;
using test::OpRun;
using Values = std::vector<Value>;

TEST(Ops, UnaryGradients) {
  using Unary = Value (*)(Graph&, Value);
  const Unary smooth[] = {ops::gelu, ops::sigmoid, ops::tanh, ops::softplus, ops::square, ops::exp};
  for (Unary f : smooth)
    for (std::int64_t n : {1, 7, 17}) check_gradient({{{n, 3}}}, [f](Graph& g, const Values& p) { return f(g, p[0]); });
  const Unary positive[] = {ops::sqrt, ops::log};  // well inside their domain
  for (Unary f : positive)
    check_gradient({{{5, 3}, 0.2f, 2.0f}}, [f](Graph& g, const Values& p) { return f(g, p[0]); });
  const Unary kinked[] = {ops::relu, ops::abs};  // far from the kink, on both sides
  for (Unary f : kinked)
    for (float centre : {-3.0f, 3.0f})
      check_gradient({{{5, 3}, 0.3f, centre}}, [f](Graph& g, const Values& p) { return f(g, p[0]); });
  for (float centre : {-3.0f, 3.0f}) {
    check_gradient({{{5, 3}, 0.3f, centre}}, [](Graph& g, const Values& p) { return ops::leaky_relu(g, p[0], 0.1f); });
    check_gradient({{{5, 3}, 0.3f, centre}}, [](Graph& g, const Values& p) { return ops::elu(g, p[0], 0.7f); });
  }
}

TEST(Ops, BinaryGradients) {
  using Binary = Value (*)(Graph&, Value, Value);
  for (Binary f : {Binary(ops::add), Binary(ops::sub), Binary(ops::mul)})
    check_gradient({{{3, 7}}, {{3, 7}}}, [f](Graph& g, const Values& p) { return f(g, p[0], p[1]); });
  check_gradient({{{3, 7}}, {{3, 7}, 0.2f, 2.0f}}, [](Graph& g, const Values& p) { return ops::div(g, p[0], p[1]); });
  check_gradient({{{3, 7}}}, [](Graph& g, const Values& p) { return ops::mul(g, p[0], p[0]); });  // twice the same
}

TEST(Ops, ALongChainIsFusedAndKeepsItsGradient) {
  auto chain = [](Graph& g, const Values& p) {
    Value x = p[0];
    for (int i = 0; i < 12; ++i) x = ops::tanh(g, ops::add(g, ops::scale(g, x, 0.7f), p[1]));
    return x;
  };
  check_gradient({{{4, 5}}, {{4, 5}}}, chain);
  const OpRun fused({{{4, 5}}, {{4, 5}}}, chain), plain({{{4, 5}}, {{4, 5}}}, chain, {.fuse = false});
  EXPECT_LT(fused.plan().graph.nodes().size(), plain.plan().graph.nodes().size() / 2);
}

TEST(Ops, MatrixProducts) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (std::int64_t n : {1, 5, 17}) {
        const Shape a = ta ? Shape{7, n} : Shape{n, 7}, b = tb ? Shape{3, 7} : Shape{7, 3};
        check_gradient({{a}, {b}}, [&](Graph& g, const Values& p) { return ops::matmul(g, p[0], p[1], ta, tb); });
      }
  check_gradient({{{3, 5, 7}}, {{11, 7}}, {{11}}},
                 [](Graph& g, const Values& p) { return ops::linear(g, p[0], p[1], p[2]); });
  check_gradient({{{9, 7}}, {{2, 7}}}, [](Graph& g, const Values& p) { return ops::linear(g, p[0], p[1], {}); });
  check_gradient({{{4, 3, 5}}, {{3, 5}}}, [](Graph& g, const Values& p) { return ops::add_tail(g, p[0], p[1]); });
  check_gradient({{{4, 3, 5}}}, [](Graph& g, const Values& p) { return ops::sum_to_tail(g, p[0], {5}); });
}

TEST(Ops, LinearWithReluIsOneNodeWithTheSameResult) {
  auto layer = [](Graph& g, const Values& p) { return ops::relu(g, ops::linear(g, p[0], p[1], p[2])); };
  const std::vector<Given> given{{{6, 13}}, {{9, 13}}, {{9}}};
  OpRun fused(given, layer), plain(given, layer, {.fuse = false});
  fused.run(), plain.run();
  EXPECT_EQ(fused.output(), plain.output());
  EXPECT_LT(fused.plan().graph.nodes().size(), plain.plan().graph.nodes().size());
}

TEST(Ops, ConvolutionInEveryLayout) {
  struct Case {
    std::int64_t n, c, out, size, kernel;
    ops::Conv2d p;
  };
  const Case cases[] = {
      {2, 8, 16, 6, 3, {.pad_h = 1, .pad_w = 1}},                               // blocked on both sides
      {3, 3, 8, 7, 3, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}},  // an image's first layer
      {9, 1, 6, 8, 5, {.pad_h = 2, .pad_w = 2}},                                // few channels: eight samples a vector
      {5, 6, 5, 7, 3, {}},
      {1, 5, 3, 5, 1, {}},
      {2, 8, 8, 6, 3, {.pad_h = 1, .pad_w = 1, .groups = 8}},  // depthwise
      {2, 6, 4, 9, 3, {.dilation_h = 2, .dilation_w = 2, .groups = 2}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.n << "x" << c.c << " -> " << c.out);
    const Shape w{c.out, c.c / c.p.groups, c.kernel, c.kernel};
    check_gradient({{{c.n, c.c, c.size, c.size}}, {w, 0.4f}, {{c.out}}},
                   [&](Graph& g, const Values& p) { return ops::conv2d(g, p[0], p[1], p[2], c.p); });
  }
}

TEST(Ops, BlockedLayoutsSurviveBetweenConvolutions) {
  const OpRun run({{{4, 3, 16, 16}}, {{16, 3, 3, 3}}, {{32, 16, 3, 3}}, {{16, 32, 1, 1}}},
                  [](Graph& g, const Values& p) {
                    const ops::Conv2d same{.pad_h = 1, .pad_w = 1};
                    Value x = ops::relu(g, ops::conv2d(g, p[0], p[1], {}, same));
                    x = ops::max_pool(g, ops::tanh(g, ops::conv2d(g, x, p[2], {}, same)), {});
                    x = ops::conv2d(g, ops::add(g, x, x), p[3], {}, {});
                    return ops::global_avg_pool(g, x);
                  });
  // The images of 32 channels, between the second and the third convolution, never change their layout, forth or back.
  for (const Node& node : run.plan().graph.nodes()) {
    const Type& type = run.plan().graph.type(node.out[0]);
    if (type.shape.rank() != 4 || type.shape[1] != 32 || type.dtype != DType::f32) continue;
    EXPECT_NE(node.op->name(), "relayout") << to_string(run.plan().graph);
    if (type.shape[2] > 3) {
      EXPECT_EQ(type.layout, Layout::channel8) << to_string(run.plan().graph);
    }
  }
}

TEST(Ops, MaxPoolingOverAWideWindowHasRoomForThePlacesOfItsMaxima) {
  const ops::Pool wide{
      .kernel_h = 17, .kernel_w = 16, .stride_h = 1, .stride_w = 1};  // 272 places: more than a byte has
  Graph g;
  ops::max_pool(g, g.input("x", f32({4, 8, 18, 17})), wide);
  const Type& places = g.type(g.nodes().back().out[1]);
  EXPECT_EQ(places.bytes(), 4u * 8 * 2 * 2 * 4);
  check_gradient({{{1, 3, 17, 17}, 3.0f}},
                 [&](Graph& graph, const Values& p) { return ops::max_pool(graph, p[0], wide); });
}

TEST(Ops, Pooling) {
  for (std::int64_t c : {8, 3}) {
    const std::vector<Given> given{{{3, c, 7, 6}, 3.0f}};
    const ops::Pool plain{}, overlapping{.kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1};
    ops::Pool inside = overlapping;
    inside.count_padding = false;
    for (const auto& pool : {plain, overlapping}) {
      check_gradient(given, [&](Graph& g, const Values& p) { return ops::max_pool(g, p[0], pool); });
      check_gradient(given, [&](Graph& g, const Values& p) { return ops::avg_pool(g, p[0], pool); });
    }
    check_gradient(given, [&](Graph& g, const Values& p) { return ops::avg_pool(g, p[0], inside); });
    check_gradient(given, [&](Graph& g, const Values& p) { return ops::global_avg_pool(g, p[0]); });
  }
}

Value norm(Graph& g, Value x, Value gamma, Value beta) {
  const Shape c = g.type(gamma).shape;
  const Value mean = g.parameter({.name = "mean", .shape = c, .kind = Parameter::Kind::statistic});
  const Value variance = g.parameter({.name = "variance", .shape = c, .kind = Parameter::Kind::statistic});
  return ops::batch_norm(g, x, gamma, beta, mean, variance, 1e-5f);
}

TEST(Ops, BatchNormAloneAndFusedWithWhatFollows) {
  for (const Shape& x : {Shape{3, 8, 3, 3}, Shape{5, 3, 2, 4}, Shape{7, 5}}) {
    const std::vector<Given> given{{x}, {{x[1]}, 0.3f, 1}, {{x[1]}, 0.3f, 0}, {x}};
    check_gradient(given, [](Graph& g, const Values& p) { return ops::add(g, norm(g, p[0], p[1], p[2]), p[3]); });
    // A ReLU whose kink nobody crosses within a difference: compare with the bare graph only.
    auto relu = [](Graph& g, const Values& p) { return ops::add(g, ops::relu(g, norm(g, p[0], p[1], p[2])), p[3]); };
    auto block = [](Graph& g, const Values& p) {  // the residual is read by two, as in a network
      return ops::mul(g, ops::relu(g, ops::add(g, norm(g, p[0], p[1], p[2]), p[3])), p[3]);
    };
    for (const auto& build : {test::Build(relu), test::Build(block)}) {
      OpRun fused(given, build), bare(given, build, {.fuse = false, .choose_layouts = false, .reuse_memory = false});
      EXPECT_NEAR(fused.run(), bare.run(), 1e-3);
      EXPECT_LT(fused.plan().graph.nodes().size(), bare.plan().graph.nodes().size());
      for (std::size_t i = 0; i < given.size(); ++i)
        for (std::size_t k = 0; k < fused.gradient(i).size(); ++k)
          ASSERT_NEAR(fused.gradient(i)[k], bare.gradient(i)[k], 1e-3) << i << " " << k;
    }
  }
}

TEST(Ops, OtherNormalisations) {
  for (std::int64_t n : {1, 7, 32})
    check_gradient(
        {{{5, n + 1}}, {{n + 1}, 0.3f, 1}, {{n + 1}}},
        [](Graph& g, const Values& p) { return ops::layer_norm(g, p[0], p[1], p[2], 1e-5f); }, 3e-2);
  for (std::int64_t c : {8, 5})
    check_gradient({{{2, c, 3, 3}}},
                   [](Graph& g, const Values& p) { return ops::local_response_norm(g, p[0], 5, 0.5f, 0.75f, 1); });
  check_gradient({{{5, 3, 2}}, {{5}}}, [](Graph& g, const Values& p) { return ops::weight_norm(g, p[0], p[1]); });
}

TEST(Ops, ShapesMoveWithoutChange) {
  check_gradient({{{3, 4, 5}}}, [](Graph& g, const Values& p) { return ops::reshape(g, p[0], {12, -1}); });
  for (int axis : {0, 1, 2})
    check_gradient({{{2, 3, 4}}, {{2, 3, 4}}, {{2, 3, 4}}}, [&](Graph& g, const Values& p) {
      return ops::concat(g, {p[0], p[1], p[2]}, axis);
    });
  check_gradient({{{4, 5, 3}}}, [](Graph& g, const Values& p) { return ops::slice(g, p[0], 1, 1, 4); });
  // Channels are joined and cut in the blocked layout.
  check_gradient({{{2, 8, 4, 4}}, {{8, 8, 1, 1}}, {{16, 8, 1, 1}}}, [](Graph& g, const Values& p) {
    const Value a = ops::conv2d(g, p[0], p[1], {}, {}), b = ops::conv2d(g, p[0], p[2], {}, {});
    return ops::slice(g, ops::concat(g, {a, b}, 1), 1, 8, 24);
  });
}

TEST(Ops, SoftmaxAndAttention) {
  check_gradient({{{3, 7}}}, [](Graph& g, const Values& p) { return ops::softmax(g, p[0]); });
  for (bool causal : {false, true})
    for (std::int64_t t : {1, 5, 17})
      check_gradient({{{2, t, 3 * 2 * 4}}},
                     [&](Graph& g, const Values& p) { return ops::attention(g, p[0], 2, causal); });
}

TEST(Ops, RecurrentLayersThroughTime) {
  for (auto cell : {ops::Cell::lstm, ops::Cell::gru, ops::Cell::rnn_tanh}) {
    const std::int64_t hidden = 5, rows = ops::gates(cell) * hidden;
    const std::vector<Given> given{{{3, 4, 6}}, {{rows, 6}, 0.4f}, {{rows, hidden}, 0.4f}, {{rows}},
                                   {{rows}},    {{3, hidden}},     {{3, hidden}}};
    check_gradient(given, [&](Graph& g, const Values& p) {
      return ops::recurrent(g, cell, p[0], {p[1], p[2], p[3], p[4]}, p[5], p[6]).y;
    });
    check_gradient(given, [&](Graph& g, const Values& p) {  // only the last state, from zero
      const auto r = ops::recurrent(g, cell, p[0], {p[1], p[2], p[3], p[4]}, {}, {});
      return ops::add(g, r.h_last, ops::add(g, p[5], p[6]));
    });
  }
}

TEST(Ops, DropoutKeepsTheMeanAndItsGradientUsesTheSameMask) {
  check_gradient({{{40, 3}}}, [](Graph& g, const Values& p) { return ops::dropout(g, p[0], 0.4f); });
  OpRun run({{{100, 100}, 0, 1}}, [](Graph& g, const Values& p) { return ops::dropout(g, p[0], 0.25f); });
  run.run();
  double sum = 0;
  for (float y : run.output()) {
    EXPECT_TRUE(y == 0 || std::abs(y - 1 / 0.75f) < 1e-6f);
    sum += y;
  }
  EXPECT_NEAR(sum / 1e4, 1.0, 0.03);
  OpRun evaluation(
      {{{4, 4}}}, [](Graph& g, const Values& p) { return ops::dropout(g, p[0], 0.5f); }, {}, false);
  evaluation.run();
  EXPECT_EQ(evaluation.output(), std::vector<float>(evaluation.parameter(0).begin(), evaluation.parameter(0).end()));
}

TEST(Ops, ShapesThatDoNotFitNameTheLayerAndBothShapes) {
  auto message = [](const std::function<void(Graph&)>& build) -> std::string {
    Graph g;
    const Graph::Scope scope(g, "conv2");
    try {
      build(g);
    } catch (const BadInput& e) {
      return e.what();
    }
    return "";
  };
  const auto conv = message([](Graph& g) {
    ops::conv2d(g, g.input("x", f32({2, 3, 8, 8})), g.parameter({.name = "w", .shape = {4, 5, 3, 3}}), {}, {});
  });
  for (const char* part : {"conv2", "[2, 3, 8, 8]", "[4, 5, 3, 3]"})
    EXPECT_NE(conv.find(part), std::string::npos) << conv;
  const auto linear = message([](Graph& g) {
    ops::linear(g, g.input("x", f32({2, 7})), g.parameter({.name = "w", .shape = {4, 5}}), {});
  });
  for (const char* part : {"conv2", "[2, 7]", "[4, 5]"}) EXPECT_NE(linear.find(part), std::string::npos) << linear;
  const auto add = message([](Graph& g) { ops::add(g, g.input("x", f32({2, 7})), g.input("y", f32({2, 8}))); });
  for (const char* part : {"conv2", "[2, 7]", "[2, 8]"}) EXPECT_NE(add.find(part), std::string::npos) << add;
  const auto pool = message([](Graph& g) {
    ops::max_pool(g, g.input("x", f32({2, 3, 1, 1})), {.kernel_h = 3, .kernel_w = 3});
  });
  for (const char* part : {"conv2", "[2, 3, 1, 1]", "[3, 3]"}) EXPECT_NE(pool.find(part), std::string::npos) << pool;
}

}  // namespace
}  // namespace echelon
