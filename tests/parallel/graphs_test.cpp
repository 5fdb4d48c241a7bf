// Graphs of workers: matrices that keep the mean, and reports that reaches everybody.

#include "parallel/exchanges/peer_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "collective/topology.h"

namespace echelon {
namespace {

using Kind = PeerGraph::Kind;
using Matrix = std::vector<std::vector<double>>;

const PeerGraph::Edges star_with_a_tail{{0, 1}, {0, 2}, {0, 3}, {3, 4}, {4, 3}};

std::vector<PeerGraph> graphs() {
  std::vector<PeerGraph> all;
  for (const Kind kind : {Kind::ring, Kind::torus, Kind::hypercube, Kind::halton, Kind::one_peer})
    for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 64})
      if (PeerGraph::problem(kind, n).empty()) all.emplace_back(kind, n);
  all.emplace_back(Kind::edges, 5, star_with_a_tail);
  return all;
}

Matrix matrix(const PeerGraph& g, int round) {
  const auto n = static_cast<std::size_t>(g.workers());
  Matrix w(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const auto r = g.round(static_cast<int>(i), round);
    w[i][i] = r.own;
    for (const auto& link : r.from) w[i][static_cast<std::size_t>(link.peer)] += link.weight;
  }
  return w;
}

// Hops that it takes until everybody has heard of worker `from`, if in each everybody who knows tells its neighbours.
int hops_to_all(const PeerGraph& g, int from) {
  std::vector<bool> knows(static_cast<std::size_t>(g.workers()));
  knows[static_cast<std::size_t>(from)] = true;
  for (int hop = 0; hop <= g.workers() * g.cycle(); ++hop) {
    if (std::ranges::all_of(knows, [](bool k) { return k; })) return hop;
    auto next = knows;
    for (int i = 0; i < g.workers(); ++i)
      if (knows[static_cast<std::size_t>(i)])
        for (const int to : g.round(i, hop).to) next[static_cast<std::size_t>(to)] = true;
    knows = next;
  }
  return -1;
}

TEST(PeerGraph, EveryRoundsMatrixIsDoublyStochasticWithoutNegativeParts) {
  for (const PeerGraph& g : graphs())
    for (int t = 0; t < g.cycle(); ++t) {
      const Matrix w = matrix(g, t);
      for (std::size_t i = 0; i < w.size(); ++i) {
        double row = 0, column = 0;
        for (std::size_t j = 0; j < w.size(); ++j) {
          EXPECT_GE(w[i][j], 0);
          row += w[i][j], column += w[j][i];
        }
        EXPECT_NEAR(row, 1, 1e-12);
        EXPECT_NEAR(column, 1, 1e-12);
        EXPECT_GT(w[i][i], 0);
      }
    }
}

TEST(PeerGraph, WhoSendsIsWhoIsReceivedFrom) {
  for (const PeerGraph& g : graphs()) {
    double messages = 0;
    for (int t = 0; t < g.cycle(); ++t) {
      const Matrix w = matrix(g, t);
      for (int i = 0; i < g.workers(); ++i) {
        const auto r = g.round(i, t);
        messages += static_cast<double>(r.to.size());
        EXPECT_FALSE(std::ranges::count(r.to, i));
        for (int j = 0; j < g.workers(); ++j)
          EXPECT_EQ(j == i || std::ranges::count(r.to, j) > 0,
                    w[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] > 0);
      }
    }
    EXPECT_DOUBLE_EQ(g.messages(), messages / g.cycle());
  }
}

TEST(PeerGraph, UndirectedOnesHaveASymmetricMatrix) {
  for (const Kind kind : {Kind::ring, Kind::torus, Kind::hypercube, Kind::edges})
    for (const int n : {4, 5, 8, 12})
      if (PeerGraph::problem(kind, n, star_with_a_tail).empty()) {
        const Matrix w = matrix({kind, n, star_with_a_tail}, 0);
        for (std::size_t i = 0; i < w.size(); ++i)
          for (std::size_t j = 0; j < w.size(); ++j) EXPECT_DOUBLE_EQ(w[i][j], w[j][i]);
      }
}

TEST(PeerGraph, WhatEveryRankKnowsReachesEveryRank) {
  for (const PeerGraph& g : graphs())
    for (int i = 0; i < g.workers(); ++i) EXPECT_GE(hops_to_all(g, i), 0) << g.workers();
}

TEST(PeerGraph, HaltonWalksThroughTheSequenceWithLogNPeersARoundAndReachesEverybody) {
  const PeerGraph eight(Kind::halton, 8);
  EXPECT_EQ(eight.cycle(), 3);
  EXPECT_EQ(eight.round(0, 0).to, (std::vector<int>{2, 4, 6}));  // 1/2, 1/4, 3/4
  EXPECT_EQ(eight.round(0, 1).to, (std::vector<int>{1, 3, 5}));  // 1/8, 5/8, 3/8
  EXPECT_EQ(eight.round(3, 1).to, (std::vector<int>{0, 4, 6}));
  for (int n = 1; n <= 130; ++n) {
    const PeerGraph g(Kind::halton, n);
    for (int t = 0; t < g.cycle(); ++t) EXPECT_EQ(static_cast<int>(g.round(0, t).to.size()), ceil_log2(n)) << n;
    const int hops = hops_to_all(g, n / 3);
    EXPECT_GE(hops, 0) << n;
    EXPECT_LE(hops, std::max(ceil_log2(n), g.cycle())) << n;
  }
}

TEST(PeerGraph, OnePeerBringsAPowerOfTwoToTheExactMeanInOneCycle) {
  const PeerGraph g(Kind::one_peer, 16);
  ASSERT_EQ(g.cycle(), 4);
  std::vector<double> x(16);
  x[5] = 16;
  for (int t = 0; t < g.cycle(); ++t) {
    const Matrix w = matrix(g, t);
    std::vector<double> next(16);
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 16; ++j) next[i] += w[i][j] * x[j];
    x = next;
  }
  for (const double v : x) EXPECT_DOUBLE_EQ(v, 1);
}

TEST(PeerGraph, ATorusIsAsSquareAsTheNumberAllows) {
  EXPECT_EQ(PeerGraph(Kind::torus, 16).round(5, 0).to, (std::vector<int>{1, 4, 6, 9}));
  EXPECT_EQ(PeerGraph(Kind::torus, 7).round(0, 0).to, (std::vector<int>{1, 6}));
}

TEST(PeerGraph, SaysWhyThereIsNone) {
  EXPECT_NE(PeerGraph::problem(Kind::hypercube, 6).find("take exchange.graph halton, or 4 workers"), std::string::npos);
  EXPECT_NE(PeerGraph::problem(Kind::edges, 4, star_with_a_tail).find("edge 3 4"), std::string::npos);
  EXPECT_NE(PeerGraph::problem(Kind::edges, 6, star_with_a_tail).find("in pieces"), std::string::npos);
  EXPECT_EQ(PeerGraph::problem(Kind::edges, 5, star_with_a_tail), "");
}

TEST(PeerGraph, ReadsEdgesAsPeopleWriteThem) {
  EXPECT_EQ(parse_edges("# a path\n0 1\n\n 1,2 # and on\r\n2\t3"), (PeerGraph::Edges{{0, 1}, {1, 2}, {2, 3}}));
  for (const char* wrong : {"0", "0 1 2", "0 x", "1 1", "-1 2", "0 1\n2"}) {
    try {
      parse_edges(wrong);
      ADD_FAILURE() << wrong;
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find("line "), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace echelon
