#pragma once
// Graphs of workers that mix with their neighbours, and their mixing matrices: W[i][j] is the part of worker j's
// weights in worker i's after a round. All of them are doubly stochastic (rows and columns sum to one), so that mixing
// keeps the mean of all workers and brings all of them to it; how fast, the second eigenvalue says. Arithmetic on
// worker numbers, without a world.
//
//   ring       i - 1 and i + 1
//   torus      four neighbours in a grid that is as square as the number allows; a ring if that is prime
//   hypercube  i with one bit changed: log2 n neighbours. Only for powers of two
//   halton     in every round to the next ceil(log2 n) distances of the base-2 Halton sequence (MALT): n/2, n/4, 3n/4,
//              n/8, 5n/8, ... Its first log n points alone would leave powers of two in pieces (of 8: 4, 2, 6 are all
//              even), so the rounds walk through all of it: n - 1 distances, then anew
//   one_peer   in round t to the worker 2^(t mod log n) places on: one message a round, and after log n rounds all of a
//              power of two agree exactly
//   edges      any list of pairs. Metropolis' weights: 1 / (1 + the larger degree of the two)
//
// halton and one_peer are directed; the others are symmetric.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace echelon {

class PeerGraph {
 public:
  enum class Kind { ring, torus, hypercube, halton, one_peer, edges };
  using Edges = std::vector<std::pair<int, int>>;

  struct Link {
    int peer = 0;
    double weight = 0;
  };
  struct Round {             // one worker's
    double own = 1;          // what it keeps of its own
    std::vector<Link> from;  // who sends to it, in order of numbers, and how much that counts
    std::vector<int> to;     // to whom it sends, in order of numbers
  };

  // Why there is no such graph, with a cure; empty if there is.
  static std::string problem(Kind kind, int workers, const Edges& edges = {});

  PeerGraph(Kind kind, int workers, Edges edges = {});
  int workers() const { return workers_; }
  int cycle() const;  // rounds after which it begins anew
  Round round(int worker, std::int64_t number) const;
  // Messages of all workers in a round, in the mean over the cycle.
  double messages() const;

 private:
  std::vector<int> offsets(std::int64_t round) const;  // of those that are the same for all workers
  std::vector<int> neighbours(int worker) const;       // of those who are symmetric

  Kind kind_;
  int workers_;
  Edges edges_;
  std::vector<int> distances_;  // halton: in the order of the sequence
};

std::vector<std::string> peer_graph_names();  // in the order of Kind, edges as "file"

// A list of edges as people write it: a pair of worker numbers on each line, # begins a comment. BadInput names the
// line.
PeerGraph::Edges parse_edges(std::string_view text);

}  // namespace echelon
