#include "graph/passes/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/gradient.h"
#include "graph/ops/conv.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"
#include "graph/ops/loss.h"
#include "graph/ops/pool.h"
#include "graph/ops/shape.h"
#include "graph/program.h"

namespace echelon {
namespace {

// A network with a residual, a view, an in-place chain and a value that is read long after it was made.
Graph network(bool training = true) {
  Graph g(training);
  Value x = g.input("x", f32({5, 3, 12, 12}));
  auto weight = [&](const char* name, Shape s) { return g.parameter({.name = name, .shape = s}); };
  const ops::Conv2d same{.pad_h = 1, .pad_w = 1};
  x = ops::relu(g, ops::conv2d(g, x, weight("a", {8, 3, 3, 3}), {}, same));
  const Value early = x;
  for (const char* name : {"b", "c"})
    x = ops::add(g, ops::tanh(g, ops::conv2d(g, x, weight(name, {8, 8, 3, 3}), {}, same)), x);
  x = ops::max_pool(g, ops::mul(g, x, early), {});
  x = ops::linear(g, ops::flatten(g, x), weight("d", {7, 8 * 36}), {});
  const Value loss = ops::cross_entropy(g, x, g.input("t", i32({5}))).loss;
  g.set_output("loss", loss);
  if (training) differentiate(g, loss);
  return g;
}

// The plan, checked by its meaning alone: at every node, what will still be read lies apart from what is written.
TEST(MemoryPlan, NothingThatIsStillNeededIsOverwritten) {
  const Plan plan = compile(network());
  const Graph& g = plan.graph;
  const auto& place = plan.memory.values;
  auto in_arena = [&](Value v) { return place[static_cast<std::size_t>(v.id)].home == Placement::Home::arena; };
  auto overlap = [&](std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  };
  auto offset = [&](Value v) { return place[static_cast<std::size_t>(v.id)].offset; };

  const auto& nodes = g.nodes();
  std::vector<int> last_read(static_cast<std::size_t>(g.values()), -1), born(static_cast<std::size_t>(g.values()), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (Value v : nodes[n].in) last_read[static_cast<std::size_t>(v.id)] = static_cast<int>(n);
    for (Value v : nodes[n].out) born[static_cast<std::size_t>(v.id)] = static_cast<int>(n);
  }
  for (const auto& [name, v] : g.outputs()) last_read[static_cast<std::size_t>(v.id)] = static_cast<int>(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].op->is_view()) continue;
    const std::size_t scratch = nodes[n].op->scratch_bytes(g.types(nodes[n].in), g.types(nodes[n].out));
    for (int id = 0; id < g.values(); ++id) {
      const Value v{id};
      const auto i = static_cast<std::size_t>(id);
      if (!in_arena(v) || born[i] >= static_cast<int>(n)) continue;
      for (Value w : nodes[n].out)  // read after this node: must survive what the node writes
        if (in_arena(w) && last_read[i] > static_cast<int>(n)) {
          EXPECT_FALSE(overlap(offset(v), g.type(v).bytes(), offset(w), g.type(w).bytes()))
              << "value " << id << " under node " << n << "\n"
              << to_string(g);
        }
      if (scratch && last_read[i] >= static_cast<int>(n)) {
        EXPECT_FALSE(overlap(offset(v), g.type(v).bytes(), plan.memory.scratch[n], scratch)) << id << " " << n;
      }
    }
  }
}

TEST(MemoryPlan, ReuseSavesMemoryAndChangesNoBit) {
  auto run = [](const CompileOptions& options) {
    const Plan plan = compile(network(), options);
    ParameterTable table;
    table.include(plan.graph);
    std::vector<float> p(table.floats()), c(table.floats());
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::sin(static_cast<float>(i)) * 0.1f;
    // The arena is exactly as large as planned, with a fence behind it.
    Buffer arena(plan.memory.arena_bytes + 256);
    std::memset(arena.data() + plan.memory.arena_bytes, 0x5a, 256);
    Executor e(plan, table, p, c, std::span(arena.data(), plan.memory.arena_bytes));
    for (int twice = 0; twice < 2; ++twice) {
      auto x = e.input("x");
      for (std::size_t i = 0; i < x.size() / 4; ++i)
        reinterpret_cast<float*>(x.data())[i] = std::cos(static_cast<float>(i));
      auto t = e.input("t");
      for (std::size_t i = 0; i < 5; ++i) reinterpret_cast<std::int32_t*>(t.data())[i] = static_cast<std::int32_t>(i);
      e.run({});
    }
    for (std::size_t i = 0; i < 256; ++i)
      EXPECT_EQ(std::to_integer<int>(arena.data()[plan.memory.arena_bytes + i]), 0x5a);
    return std::pair(c, plan.memory.arena_bytes);
  };
  const auto [tight, small] = run({});
  const auto [loose, large] = run({.reuse_memory = false});
  EXPECT_EQ(tight, loose);
  EXPECT_LT(small, large * 2 / 3);
  EXPECT_TRUE(std::ranges::any_of(tight, [](float x) { return x != 0; }));
}

TEST(MemoryPlan, AGraphThatOnlyPredictsNeedsFarLess) {
  EXPECT_LT(compile(network(false)).memory.arena_bytes, compile(network()).memory.arena_bytes / 2);
}

}  // namespace
}  // namespace echelon
