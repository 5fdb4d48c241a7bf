// Graphs: files, made-up ones, trees of neighbours, and how nodes are spread.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/graph/neighbourhoods.h"
#include "data/partition.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"

namespace echelon::data {
namespace {

NodeGraphPtr graph_of(const std::string& nodes, const std::string& edges) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_file_atomically(*disk, dir.path("nodes.txt"), nodes);
  write_file_atomically(*disk, dir.path("edges.txt"), edges);
  return read_node_graph(*disk, dir.path(""));
}

TEST(NodeGraph, ReadsWhatTheFilesSay) {
  const auto graph = graph_of("0 1.5 2\n1 3 4\n-1 5 6\n0 7 8\n", "# who knows whom\n0 1\n1 0\n3 1 # twice\n2 2\n");
  EXPECT_EQ(graph->nodes(), 4u);
  EXPECT_EQ(graph->features, 2);
  EXPECT_EQ(graph->classes, 2);
  EXPECT_EQ(std::vector<std::uint32_t>(graph->of(1).begin(), graph->of(1).end()), (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(graph->degree(2), 0u);  // nobody is his own neighbour
  EXPECT_EQ(graph->row(3)[1], 8);
}

TEST(NodeGraph, NamesFileAndLineOfWhatIsWrong) {
  const auto text = [](const std::string& nodes, const std::string& edges) {
    try {
      graph_of(nodes, edges);
      return std::string();
    } catch (const BadInput& problem) {
      return std::string(problem.what());
    }
  };
  EXPECT_NE(text("0 1\n1 x\n", "0 1\n").find("nodes.txt, line 2: expected a number, found 'x'"), std::string::npos);
  EXPECT_NE(text("0 1\n1\n", "0 1\n").find("line 2: this node has 0 features, those before 1"), std::string::npos);
  EXPECT_NE(text("0\n1\n", "0 1\n0 7\n").find("edges.txt, line 2: there is no node 7 among 2"), std::string::npos);
  EXPECT_NE(text("0\n1\n", "0 1 2\n").find("expected a pair of nodes"), std::string::npos);
  EXPECT_NE(text("0\n0\n", "0 1\n").find("two or more"), std::string::npos);
  EXPECT_NE(text("", "").find("there is no node"), std::string::npos);
  EXPECT_NE(text("0 nan\n1 0\n", "").find("expected a number"), std::string::npos);
}

TEST(NodeGraph, ComesWithEchelon) {
  const auto graph = read_node_graph(*make_real_disk(), source_path("share/clubs"));
  EXPECT_EQ(graph->nodes(), 34u);
  EXPECT_EQ(graph->features, 34);  // its own place
  EXPECT_EQ(std::ranges::count(graph->labels, 1), 17);
}

TEST(Communities, KnowEachOtherMoreThanOthers) {
  const auto graph = make_communities({.nodes = 2000, .classes = 5, .degree = 8, .within = 0.8});
  double inside = 0, all = 0;
  for (std::uint32_t v = 0; v < graph->nodes(); ++v)
    for (const std::uint32_t other : graph->of(v)) inside += graph->labels[v] == graph->labels[other], ++all;
  EXPECT_NEAR(all / 2000, 8, 0.3);
  EXPECT_NEAR(inside / all, 0.84, 0.03);  // one in five of the others is of the class by chance
}

TEST(Neighbourhoods, HaveAllNeighboursWhereThereIsRoom) {
  const auto graph = graph_of("0 1\n1 10\n0 100\n1 1000\n", "0 1\n0 2\n2 3\n");
  const auto samples = make_neighbourhoods(graph, {0, 0});
  EXPECT_FALSE(samples->info().random);
  ASSERT_EQ(samples->fields()[2].shape, (Shape{2, 2, 1 + node_columns}));
  Sample sample(samples->fields());
  samples->get(0, {}, sample.ref());
  const auto row = [&](std::size_t level, std::size_t i) { return sample.field<float>(level).subspan(i * 5, 5); };
  EXPECT_EQ(row(0, 0)[0], 1);
  EXPECT_EQ(row(1, 0)[0], 10);
  EXPECT_EQ(row(1, 1)[0], 100);
  EXPECT_EQ(row(2, 0)[0], 1);  // of node 1
  EXPECT_EQ(row(2, 1)[0], 0);  // it has no other
  EXPECT_LT(row(2, 1)[1 + absent_column], -1e8f);
  EXPECT_EQ(row(2, 3)[0], 1000);  // of node 2
  EXPECT_FLOAT_EQ(row(0, 0)[1 + self_column], 1.0f / 3);
  EXPECT_FLOAT_EQ(row(1, 1)[1 + edge_column], 1 / std::sqrt(9.0f));
  EXPECT_FLOAT_EQ(row(1, 1)[1 + mean_column], 0.5f);
  EXPECT_EQ(sample.field<std::int32_t>(3)[0], 0);
}

TEST(Neighbourhoods, DrawSomeAnewInEveryEpochWhereThereIsNot) {
  std::string nodes = "0 0\n", edges;
  for (int i = 1; i < 40; ++i) nodes += fmt::format("1 {}\n", i), edges += fmt::format("0 {}\n", i);
  const auto samples = make_neighbourhoods(graph_of(nodes, edges), {5});
  EXPECT_TRUE(samples->info().random);
  Sample sample(samples->fields());
  std::set<float> seen;
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    samples->get(0, {.seed = 1, .epoch = epoch}, sample.ref());
    std::set<float> now;
    for (std::size_t i = 0; i < 5; ++i) now.insert(sample.field<float>(1)[i * 5]);
    EXPECT_EQ(now.size(), 5u);  // nobody twice
    EXPECT_FALSE(now.contains(0));
    EXPECT_FLOAT_EQ(sample.field<float>(1)[1 + mean_column], 0.2f);
    EXPECT_FLOAT_EQ(sample.field<float>(1)[1 + edge_column], 39.0f / 5 / std::sqrt(40.0f * 2));
    seen.insert(now.begin(), now.end());
  }
  EXPECT_EQ(seen.size(), 39u);
}

TEST(Partition, KeepsNeighboursTogether) {
  const auto graph = make_communities({.nodes = 400, .classes = 2, .degree = 3, .within = 1});
  const auto samples = make_neighbourhoods(graph, {5});
  const auto parts = samples_of_parts(*samples, {100, 100, 100, 100}, 0);
  const auto inside = [&](const std::function<std::size_t(std::uint32_t)>& part_of) {
    double same = 0, all = 0;
    for (std::uint32_t v = 0; v < graph->nodes(); ++v)
      for (const std::uint32_t other : graph->of(v)) same += part_of(v) == part_of(other), ++all;
    return same / all;
  };
  std::vector<std::size_t> of(400);
  std::set<std::uint64_t> seen;
  for (std::size_t p = 0; p < 4; ++p)
    for (const std::uint64_t i : parts[p]) of[i] = p, seen.insert(i);
  EXPECT_EQ(seen.size(), 400u);
  EXPECT_GT(inside([&](std::uint32_t v) { return of[v]; }), 1.3 * inside([](std::uint32_t v) { return v / 100; }));
}

}  // namespace
}  // namespace echelon::data
