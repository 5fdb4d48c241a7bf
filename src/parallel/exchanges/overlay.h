#pragma once
// Who hands its contributions to whom on the way to a server: pure arithmetic.
//
//   flat   every worker writes to the server itself
//   tree   each rank takes those of `fanout` others, adds its own worker's and passes the sum on (Rudra, MLNet)
//   hosts  the ranks of one host hand theirs to the first of them, so that one message leaves the host (MXNet's
//          KVStore); on the server's own host, to the server

#include <vector>

#include "world/world.h"

namespace echelon::exchanges {

struct Overlay {
  enum class Kind { flat, tree, hosts };
  Kind kind = Kind::flat;
  int fanout = 2;
};

// -1 for the root, which has none. `hosts` as in RankPlace.
Rank parent_of(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts);
std::vector<Rank> children_of(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts);

}  // namespace echelon::exchanges
