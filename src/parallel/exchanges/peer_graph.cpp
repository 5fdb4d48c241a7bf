#include "parallel/exchanges/peer_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "collective/topology.h"

namespace echelon {

namespace {

void sort_and_unite(std::vector<int>& list) {
  std::ranges::sort(list);
  const auto rest = std::ranges::unique(list);
  list.erase(rest.begin(), rest.end());
}

int rows_of_torus(int n) {
  int rows = 1;
  for (int r = 1; r * r <= n; ++r)
    if (n % r == 0) rows = r;
  return rows;
}

bool is_connected(int n, const PeerGraph::Edges& edges) {
  std::vector<int> group(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) group[static_cast<std::size_t>(i)] = i;
  const auto head = [&](int i) {
    while (group[static_cast<std::size_t>(i)] != i) i = group[static_cast<std::size_t>(i)];
    return i;
  };
  for (const auto& [a, b] : edges) group[static_cast<std::size_t>(head(a))] = head(b);
  for (int i = 1; i < n; ++i)
    if (head(i) != head(0)) return false;
  return true;
}

// The fraction of a circle at the sequence's k-th point: the bits of k, mirrored at the point.
double halton_point(unsigned k) {
  double fraction = 0;
  for (double part = 0.5; k > 0; k >>= 1, part /= 2) fraction += (k & 1) * part;
  return fraction;
}

// Each distance once, at its first point.
std::vector<int> halton_distances(int workers) {
  std::vector<int> list;
  std::vector<char> known(static_cast<std::size_t>(workers), 0);
  for (unsigned k = 1; std::ssize(list) < workers - 1; ++k) {
    const int distance = static_cast<int>(workers * halton_point(k));
    if (distance > 0 && !std::exchange(known[static_cast<std::size_t>(distance)], 1)) list.push_back(distance);
  }
  return list;
}

}  // namespace

std::vector<std::string> peer_graph_names() { return {"ring", "torus", "hypercube", "halton", "one_peer", "file"}; }

std::string PeerGraph::problem(Kind kind, int workers, const Edges& edges) {
  if (kind == Kind::hypercube && (workers & (workers - 1)) != 0)
    return fmt::format(
        "a hypercube has a power of two of corners, but there are {} workers: take exchange.graph "
        "halton, or {} workers",
        workers, 1 << (ceil_log2(workers) - 1));
  if (kind != Kind::edges) return {};
  for (const auto& [a, b] : edges)
    if (a < 0 || b < 0 || a >= workers || b >= workers)
      return fmt::format(
          "the graph's file has an edge {} {}, but workers are numbered 0 to {}: take as many workers "
          "as the file is about",
          a, b, workers - 1);
  if (!is_connected(workers, edges))
    return fmt::format(
        "the edges in the graph's file leave the {} workers in pieces that would never hear of each "
        "other: set exchange.file to a connected graph",
        workers);
  return {};
}

PeerGraph::PeerGraph(Kind kind, int workers, Edges edges) : kind_(kind), workers_(workers), edges_(std::move(edges)) {
  invariant(problem(kind, workers, edges_).empty(), "there is such a graph");
  if (kind == Kind::halton) distances_ = halton_distances(workers);
}

int PeerGraph::cycle() const {
  const int each = std::max(1, ceil_log2(workers_));  // the distances of a round, or the rounds of one_peer
  if (kind_ == Kind::halton) return std::max(1, (workers_ - 1 + each - 1) / each);
  return kind_ == Kind::one_peer ? each : 1;
}

std::vector<int> PeerGraph::offsets(std::int64_t round) const {
  std::vector<int> list;
  if (workers_ == 1) return list;
  if (kind_ == Kind::one_peer) list.push_back(1 << (round % cycle()));
  if (kind_ == Kind::halton) {
    const std::size_t each = static_cast<std::size_t>(ceil_log2(workers_));
    const std::size_t first = static_cast<std::size_t>(round % cycle()) * each;
    for (std::size_t i = 0; i < each; ++i) list.push_back(distances_[(first + i) % distances_.size()]);
  }
  sort_and_unite(list);
  return list;
}

std::vector<int> PeerGraph::neighbours(int worker) const {
  std::vector<int> list;
  const auto add = [&](int w) {
    if (w != worker) list.push_back(w);
  };
  switch (kind_) {
    case Kind::ring:
      add((worker + 1) % workers_);
      add((worker + workers_ - 1) % workers_);
      break;
    case Kind::torus: {
      const int rows = rows_of_torus(workers_), columns = workers_ / rows;
      const int r = worker / columns, c = worker % columns;
      add((r + 1) % rows * columns + c);
      add((r + rows - 1) % rows * columns + c);
      add(r * columns + (c + 1) % columns);
      add(r * columns + (c + columns - 1) % columns);
      break;
    }
    case Kind::hypercube:
      for (int bit = 1; bit < workers_; bit *= 2) add(worker ^ bit);
      break;
    case Kind::edges:
      for (const auto& [a, b] : edges_) {
        if (a == worker) add(b);
        if (b == worker) add(a);
      }
      break;
    case Kind::halton:
    case Kind::one_peer: break;
  }
  sort_and_unite(list);
  return list;
}

PeerGraph::Round PeerGraph::round(int worker, std::int64_t number) const {
  Round r;
  if (kind_ == Kind::halton || kind_ == Kind::one_peer) {  // shifts of everybody by the same: their columns sum to one
    const std::vector<int> shifts = offsets(number);
    r.own = 1.0 / static_cast<double>(shifts.size() + 1);
    for (const int s : shifts) {
      r.from.push_back({(worker + workers_ - s) % workers_, r.own});
      r.to.push_back((worker + s) % workers_);
    }
    std::ranges::sort(r.from, {}, &Link::peer);
    std::ranges::sort(r.to);
    return r;
  }
  r.to = neighbours(worker);
  for (const int peer : r.to) {
    const std::size_t degree = std::max(r.to.size(), neighbours(peer).size());
    r.from.push_back({peer, 1.0 / static_cast<double>(degree + 1)});
    r.own -= r.from.back().weight;
  }
  return r;
}

double PeerGraph::messages() const {
  double sum = 0;
  for (int t = 0; t < cycle(); ++t)
    for (int w = 0; w < workers_; ++w) sum += static_cast<double>(round(w, t).to.size());
  return sum / cycle();
}

PeerGraph::Edges parse_edges(std::string_view text) {
  PeerGraph::Edges edges;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    rest = rest.substr(0, rest.find('#'));
    int pair[2], found = 0;
    const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r,"), rest.size())); };
    for (skip(); !rest.empty() && found < 2; skip()) {
      const auto [at, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pair[found]);
      if (error != std::errc()) break;
      ++found;
      rest.remove_prefix(static_cast<std::size_t>(at - rest.data()));
    }
    if (found == 0 && rest.empty()) continue;
    if (found != 2 || !rest.empty() || pair[0] == pair[1] || pair[0] < 0 || pair[1] < 0)
      throw BadInput(fmt::format("line {}: an edge is a pair of different worker numbers, such as 0 3", line));
    edges.emplace_back(pair[0], pair[1]);
  }
  return edges;
}

}  // namespace echelon
