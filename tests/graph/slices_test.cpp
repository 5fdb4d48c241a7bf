// Slices of a graph: what joins them, how gradients cross them, and that passes keep them apart.
#include "graph/ops/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/ops/batch_norm_strips.h"
#include "graph/ops/class_scores.h"
#include "graph/ops/conv.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"
#include "graph/ops/norm.h"
#include "graph/ops/recurrent_slices.h"
#include "graph/ops/shape.h"
#include "tests/graph/op_check.h"

namespace echelon {
namespace {

using Values = std::vector<Value>;

// A hidden layer in `slices` parts: columns of the first matrix, rows of the second, and their sum.
Value sliced_pair(Graph& g, Value x, const Values& first, const Values& second) {
  Values parts;
  for (std::size_t s = 0; s < first.size(); ++s) {
    g.set_slice(static_cast<int>(s));
    parts.push_back(ops::linear(g, ops::tanh(g, ops::linear(g, x, first[s], {})), second[s], {}));
  }
  g.set_slice(-1);
  return ops::tree_sum(g, parts);
}

TEST(Slices, TreeSumHandsItsGradientToEveryAddend) {
  for (std::size_t n : {1u, 2u, 3u, 5u, 8u})
    test::check_gradient(std::vector<test::Given>(n, {{3, 5}}),
                         [](Graph& g, const Values& p) { return ops::tree_sum(g, p); });
  test::check_gradient({{{3, 5}}}, [](Graph& g, const Values& p) { return ops::tree_sum(g, {p[0], p[0], p[0]}); });
}

TEST(Slices, TreeSumRefusesOtherShapes) {
  Graph g;
  const Value a = g.input("a", f32({2, 3})), b = g.input("b", f32({3, 2}));
  EXPECT_THROW(ops::tree_sum(g, {a, b}), BadInput);
}

TEST(Slices, SplitCutsAnyAxisAndItsGradientJoins) {
  for (int axis : {0, 1, 2})
    test::check_gradient({{{5, 5, 5}}}, [axis](Graph& g, const Values& p) {
      const auto parts = ops::split(g, p[0], axis, {2, 1, 2});
      return ops::concat(g, {ops::square(g, parts[2]), parts[1], ops::tanh(g, parts[0])}, axis);
    });
  // A part that nobody reads adds nothing.
  test::check_gradient({{{4, 6}}}, [](Graph& g, const Values& p) { return ops::split(g, p[0], 1, {2, 4})[1]; });
  Graph g;
  EXPECT_THROW(ops::split(g, g.input("x", f32({2, 5})), 1, {2, 2}), BadInput);
}

TEST(Slices, AGradientThatComesBackFromSeveralSlicesIsOneTreeSum) {
  Graph g;
  auto parameter = [&](const char* name, Shape shape) { return g.parameter({.name = name, .shape = shape}); };
  const Value x = parameter("x", {4, 6});
  const Value y = sliced_pair(g, ops::tanh(g, x), {parameter("a0", {3, 6}), parameter("a1", {3, 6})},
                              {parameter("b0", {2, 3}), parameter("b1", {2, 3})});
  const Value loss = ops::distance_loss(g, ops::Distance::mse, y, g.input("t", f32({4, 2})));
  g.set_output("loss", loss);
  differentiate(g, loss);
  int backward_sums = 0;
  for (const Node& node : g.nodes()) {
    if (ops::is_tree_sum(*node.op)) {
      EXPECT_EQ(node.slice, -1);
      ASSERT_EQ(node.in.size(), 2u);
      EXPECT_EQ(g.slice_of(node.in[0]), 0);
      EXPECT_EQ(g.slice_of(node.in[1]), 1);
      backward_sums += node.backward;
    }
    // Nothing of one slice reads what another has made.
    for (Value v : node.in)
      EXPECT_TRUE(node.slice < 0 || g.slice_of(v) == node.slice || g.slice_of(v) == -1) << to_string(g);
  }
  EXPECT_EQ(backward_sums, 1) << to_string(g);  // of tanh(x), where the slices meet
  EXPECT_NE(to_string(g).find(" slice 1 (backward)"), std::string::npos);
}

TEST(Slices, AWeightThatSeveralSlicesReadGetsTheSumOfWhatTheySendBack) {
  // Two rows of x, each seen by a slice, and one matrix for both.
  const auto strips = [](Graph& g, const Values& p) {
    const auto rows = ops::split(g, p[0], 0, {1, 2});
    Values out;
    for (int s = 0; s < 2; ++s) {
      g.set_slice(s);
      out.push_back(ops::linear(g, rows[static_cast<std::size_t>(s)], p[1], p[2]));
    }
    g.set_slice(-1);
    return ops::concat(g, out, 0);
  };
  const std::vector<test::Given> given{{{3, 4}}, {{5, 4}}, {{5}}};
  test::check_gradient(given, strips);
  const test::OpRun run(given, strips);
  EXPECT_EQ(std::ranges::count_if(run.plan().graph.nodes(), [](const Node& n) { return ops::is_tree_sum(*n.op); }), 2);
}

TEST(Slices, ASlicedPairHasTheGradientsOfTheWhole) {
  const std::vector<test::Given> given{{{4, 6}}, {{3, 6}}, {{3, 6}}, {{3, 6}}, {{2, 3}}, {{2, 3}}, {{2, 3}}};
  const auto sliced = [](Graph& g, const Values& p) {
    return sliced_pair(g, p[0], {p[1], p[2], p[3]}, {p[4], p[5], p[6]});
  };
  test::check_gradient(given, sliced);
  const auto whole = [](Graph& g, const Values& p) {
    const Value first = ops::concat(g, {p[1], p[2], p[3]}, 0), second = ops::concat(g, {p[4], p[5], p[6]}, 1);
    return ops::linear(g, ops::tanh(g, ops::linear(g, p[0], first, {})), second, {});
  };
  test::OpRun a(given, sliced), b(given, whole);
  EXPECT_NEAR(a.run(), b.run(), 1e-4);
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t k = 0; k < a.gradient(i).size(); ++k) ASSERT_NEAR(a.gradient(i)[k], b.gradient(i)[k], 1e-4);
}

TEST(Slices, CrossEntropyOverDealtOutClassesHasItsGradient) {
  const std::vector<kernels::ClassPart> parts{{0, 3}, {3, 2}, {5, 4}};
  for (float smoothing : {0.0f, 0.3f})
    test::check_gradient({{{4, 9}, 2}}, [&](Graph& g, const Values& p) {
      const Value targets = g.input("targets", i32({4}));  // zeros
      const auto logits = ops::split(g, p[0], 1, {3, 2, 4});
      Values scores;
      for (std::size_t s = 0; s < parts.size(); ++s)
        scores.push_back(g.add(ops::class_scores_op(parts[s], smoothing, true), {logits[s], targets})[0]);
      return ops::join_class_scores(g, scores, targets, parts, smoothing).loss;
    });
}

TEST(Slices, ARecurrentLayerInSlicesHasItsGradients) {
  for (const ops::Cell cell : {ops::Cell::lstm, ops::Cell::gru, ops::Cell::rnn_tanh}) {
    const std::int64_t units = 2, wide = ops::gates(cell) * units;
    for (const bool state : {false, true}) {
      std::vector<test::Given> given{{{3, 4, 5}}};  // x, then the weights of two slices, then their states
      for (int s = 0; s < 2; ++s)
        for (const Shape& shape : {Shape{wide, 5}, Shape{wide, 2 * units}, Shape{wide}, Shape{wide}})
          given.push_back({shape, 0.5f});
      for (int s = 0; state && s < 4; ++s) given.push_back({{3, units}});
      test::check_gradient(given, [&](Graph& g, const Values& p) {
        std::vector<Values> in{{p[0], p[1], p[2], p[3], p[4]}, {p[0], p[5], p[6], p[7], p[8]}};
        for (std::size_t s = 0; state && s < 2; ++s) {
          in[s].push_back(p[9 + s]);
          if (cell == ops::Cell::lstm) in[s].push_back(p[11 + s]);
        }
        const auto out = ops::recurrent_in_slices(g, cell, in);
        Value y = ops::concat(g, {out[0][0], out[1][0]}, 2);
        if (cell == ops::Cell::lstm) {  // its last c as well
          const Value c = ops::reshape(g, ops::concat(g, {out[0][2], out[1][2]}, 1), {3, 1, 2 * units});
          y = ops::concat(g, {y, c}, 1);
        }
        return y;
      });
    }
  }
}

TEST(Slices, BatchNormOverStripsIsThatOfTheWholeImage) {
  const std::vector<test::Given> given{{{2, 3, 5, 4}, 2, 1}, {{3}, 0.3f, 1}, {{3}}};
  const auto in_strips = [](Graph& g, const Values& p) {
    const auto rows = ops::split(g, p[0], 2, {2, 1, 2});
    std::vector<Values> in;
    for (Value strip : rows) in.push_back({strip, p[1], p[2]});
    Values out;
    for (const Values& of_slice : ops::batch_norm_in_strips(g, in, 1e-5f)) out.push_back(of_slice[0]);
    return ops::concat(g, out, 2);
  };
  const auto at_once = [](Graph& g, const Values& p) {
    auto statistic = [&](const char* name) {
      return g.parameter({.name = name, .shape = {3}, .kind = Parameter::Kind::statistic});
    };
    return ops::batch_norm(g, p[0], p[1], p[2], statistic("mean"), statistic("variance"), 1e-5f);
  };
  test::check_gradient(given, in_strips);
  test::OpRun strips(given, in_strips), whole(given, at_once);
  EXPECT_NEAR(strips.run(), whole.run(), 1e-3);
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t k = 0; k < strips.gradient(i).size(); ++k)
      ASSERT_NEAR(strips.gradient(i)[k], whole.gradient(i)[k], 1e-3) << "input " << i << " element " << k;
}

TEST(Slices, WindowsOverStripsSeeTheirNeighboursRows) {
  // Odd heights, strides, dilation and padding, in two, three and five strips: the pass against the whole op.
  struct Window {
    ops::Conv2d conv;
    std::int64_t kernel;
  };
  for (const Window& w : {Window{{.pad_h = 1, .pad_w = 1}, 3}, Window{{.stride_h = 2, .stride_w = 2, .pad_h = 2}, 5},
                          Window{{.pad_h = 2, .dilation_h = 2}, 3}, Window{{}, 1}})
    for (int slices : {2, 3, 5}) {
      const std::vector<test::Given> given{{{2, 3, 11, 7}}, {{4, 3, w.kernel, w.kernel}, 0.3f}, {{4}}};
      const auto op = [&](Graph& g, const Values& p) { return ops::conv2d(g, p[0], p[1], p[2], w.conv); };
      const auto strips = [&](Graph& g, const Values& p) {
        Graph one;  // the op's own rule, on the rows that split hands out
        const Value y = op(
            one, {one.input("x", f32({2, 3, 11, 7})), one.input("w", f32(given[1].shape)), one.input("b", f32({4}))});
        const Node& node = one.nodes()[static_cast<std::size_t>(one.info(y).producer)];
        const std::vector<Type> types = one.types(node.in);
        const std::vector<Cut> arrives{{2}, {}, {}};
        const auto rule = node.op->slice_rule({.in = types, .arrives = arrives, .slices = slices, .strips = true});
        std::vector<std::int64_t> extents;
        for (int s = 0; s < slices; ++s) extents.push_back(part_begin(11, slices, s + 1) - part_begin(11, slices, s));
        std::vector<Values> in;
        for (Value strip : ops::split(g, p[0], 2, extents)) in.push_back({strip, p[1], p[2]});
        Values out;
        for (const Values& of_slice : rule.value().build(g, in)) out.push_back(of_slice[0]);
        return ops::concat(g, out, 2);
      };
      test::check_gradient(given, strips);
      test::OpRun a(given, strips), b(given, op);
      EXPECT_NEAR(a.run(), b.run(), 1e-2);
      const auto x = a.output(), y = b.output();
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-4);
    }
}

TEST(Slices, ElementwiseChainsAreFusedWithinASliceOnly) {
  Graph g;
  Value x = g.input("x", f32({2, 3}));
  for (int slice : {-1, 0, 0, 1, -1}) {
    g.set_slice(slice);
    x = ops::tanh(g, ops::scale(g, x, 0.5f));
  }
  g.set_output("y", x);
  const Plan plan = compile(g);
  std::vector<int> slices;
  for (const Node& node : plan.graph.nodes()) slices.push_back(node.slice);
  EXPECT_EQ(slices, (std::vector<int>{-1, 0, 1, -1})) << to_string(plan.graph);
}

TEST(Slices, ALinearLayerTakesOnlyAReluOfItsOwnSlice) {
  for (int slice : {0, 1}) {
    Graph g;
    g.set_slice(0);
    const Value y = ops::linear(g, g.input("x", f32({2, 3})), g.parameter({.name = "w", .shape = {4, 3}}), Value{});
    g.set_slice(slice);
    g.set_output("y", ops::relu(g, y));
    EXPECT_EQ(compile(g).graph.nodes().size(), slice == 0 ? 1u : 2u);
  }
}

}  // namespace
}  // namespace echelon
