#include "parallel/exchanges/overlay.h"

#include <algorithm>

namespace echelon::exchanges {

Rank parent_of(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts) {
  if (rank == root) return -1;
  const int n = static_cast<int>(hosts.size());
  if (overlay.kind == Overlay::Kind::flat) return root;
  if (overlay.kind == Overlay::Kind::tree) {  // a heap, turned so that the root is its first
    const int place = (rank - root + n) % n;
    return ((place - 1) / overlay.fanout + root) % n;
  }
  const int own = hosts[static_cast<std::size_t>(rank)];
  if (own == hosts[static_cast<std::size_t>(root)]) return root;
  const auto first = static_cast<Rank>(std::ranges::find(hosts, own) - hosts.begin());
  return rank == first ? root : first;
}

std::vector<Rank> children_of(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts) {
  std::vector<Rank> children;
  for (Rank r = 0; r < static_cast<Rank>(hosts.size()); ++r)
    if (parent_of(overlay, r, root, hosts) == rank) children.push_back(r);
  return children;
}

}  // namespace echelon::exchanges
