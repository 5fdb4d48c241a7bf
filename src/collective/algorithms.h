#pragma once
// The ways to do an all-reduce: a table that a reader can open (algorithms.cpp). docs/collectives.md says how to add
// one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collective/all_reduce.h"
#include "collective/link.h"
#include "collective/move.h"

namespace echelon {

// One all-reduce as seen by one member.
struct TrafficQuery {
  int n = 1, index = 0;
  std::size_t count = 0, item = 4;  // numbers, and bytes of each
  const Site* site = nullptr;       // which members share a host
  std::size_t bytes() const { return count * item; }
};

struct Traffic {  // sent by one member
  std::uint64_t messages = 0, bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct Algorithm {
  std::string_view name;
  std::string_view about;  // one line, with the paper

  // AllReduceOptions it is done: either moves that messages carry out, or by other means.
  void (*plan)(const TrafficQuery&, Mover&) = nullptr;
  void (*run)(Group&, TypedSpan, Reduction) = nullptr;

  // Exactly what `case.index` sends. Zero for what needs no messages.
  Traffic (*traffic)(const TrafficQuery&) = nullptr;
  // What it should take: n members, evenly spread over the link's hosts.
  double (*seconds)(double bytes, int n, const Link&) = nullptr;

  // Why it cannot work in this group; empty if it can.
  std::string_view (*refuses)(Group&) = nullptr;
  // Whether it gives the sum over `shards` logical shards in the one fixed tree (shard_sum.h).
  bool (*fixed_tree)(int n, int shards) = nullptr;
};

std::span<const Algorithm> all_reduce_algorithms();
const Algorithm& find_algorithm(std::string_view name);  // BadInput if there is none of that name

// The parts of the table, one file each in all_reduce/.
extern const Algorithm ring_all_reduce, binomial_all_reduce, double_tree_all_reduce, recursive_doubling_all_reduce,
    rabenseifner_all_reduce, hierarchical_all_reduce, owners_all_reduce, direct_all_reduce, native_all_reduce;

}  // namespace echelon
