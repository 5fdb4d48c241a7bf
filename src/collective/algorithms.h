#pragma once
// The all-reduce algorithms: a table that a reader can open (algorithms.cpp), one row per file in all_reduce/.
// docs/adding-a-collective.md shows how to add one. The table is constant; everything here is thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collective/all_reduce.h"
#include "collective/link_costs.h"
#include "collective/transfers/transfer.h"

namespace echelon {

// One all-reduce as seen by one member.
struct AllReduceShape {
  int n = 1, index = 0;                 // members, and this one's number
  std::size_t count = 0, item = 4;      // elements, and bytes of each
  const HostTopology* hosts = nullptr;  // which members share a host
  std::size_t bytes() const { return count * item; }
};

struct MemberTraffic {  // sent by one member
  std::uint64_t messages = 0, bytes = 0;
  friend bool operator==(const MemberTraffic&, const MemberTraffic&) = default;
};

struct Algorithm {
  std::string_view name;   // identifies it
  std::string_view about;  // one line, with the paper

  // How it is done: either transfers that messages carry out (plan), or in another way (run). The other one is null.
  void (*plan)(const AllReduceShape&, TransferRunner&) = nullptr;
  void (*run)(Group&, TypedSpan, Reduction) = nullptr;

  // Exactly what member `shape.index` sends. Zero where no messages of ours are needed.
  MemberTraffic (*traffic)(const AllReduceShape&) = nullptr;
  // The predicted time for n members that are spread evenly over the hosts.
  double (*seconds)(double bytes, int n, const LinkCosts&) = nullptr;

  // The reason why it cannot work in this group; empty if it can. Null: it works in every group.
  std::string_view (*why_not)(Group&) = nullptr;

  friend bool operator==(const Algorithm& a, const Algorithm& b) { return a.name == b.name; }
};

std::span<const Algorithm> all_reduce_algorithms();
const Algorithm& find_algorithm(std::string_view name);  // BadInput if there is none of that name

}  // namespace echelon
