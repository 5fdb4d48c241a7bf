#include "data/graph/node_graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/files/fingerprint.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t most_graph_bytes = 1ull << 30, most_one_place = 4096;

using Edge = std::pair<std::uint32_t, std::uint32_t>;

void fill_in_neighbours(NodeGraph& graph, const std::vector<Edge>& edges) {
  std::vector<std::vector<std::uint32_t>> lists(graph.nodes());
  for (const auto& [a, b] : edges)
    if (a != b) lists[a].push_back(b), lists[b].push_back(a);
  graph.first.push_back(0);
  for (auto& list : lists) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
    graph.neighbours.insert(graph.neighbours.end(), list.begin(), list.end());
    graph.first.push_back(graph.neighbours.size());
  }
}

template <typename F>
void for_each_line(const std::string& text, const F& f) {
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    std::string_view words = line.substr(0, line.find('#'));
    std::vector<std::string_view> found;
    while (true) {
      const std::size_t begin = words.find_first_not_of(" \t\r,");
      if (begin == std::string_view::npos) break;
      const std::size_t end = std::min(words.find_first_of(" \t\r,", begin), words.size());
      found.push_back(words.substr(begin, end - begin));
      words.remove_prefix(end);
    }
    if (!found.empty()) f(number, found);
  }
}

template <typename T>
T number_in(std::string_view word, const std::string& file, std::size_t line, const char* what) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  bool fine = error == std::errc() && end == word.data() + word.size();
  if constexpr (std::is_floating_point_v<T>) fine = fine && std::isfinite(value);
  if (!fine) bad_input("{}, line {}: expected {}, found '{}'", file, line, what, word);
  return value;
}

void read_nodes(Disk& disk, const std::string& file, NodeGraph& graph) {
  for_each_line(read_text(disk, file, most_graph_bytes), [&](std::size_t line, const auto& words) {
    const auto label = number_in<std::int32_t>(words[0], file, line, "a class (a whole number; -1: not known)");
    if (label < -1 || label > 1'000'000)
      bad_input("{}, line {}: classes are 0 to 1000000, or -1, not {}", file, line, label);
    if (graph.labels.empty()) graph.features = std::ssize(words) - 1;
    if (std::ssize(words) - 1 != graph.features)
      bad_input("{}, line {}: this node has {} features, those before {}", file, line, words.size() - 1,
                graph.features);
    graph.labels.push_back(label);
    graph.classes = std::max<std::int64_t>(graph.classes, label + 1);
    for (std::size_t i = 1; i < words.size(); ++i)
      graph.numbers.push_back(number_in<float>(words[i], file, line, "a number"));
  });
  if (graph.labels.empty()) bad_input("{}: there is no node in it", file);
  if (graph.classes < 2)
    bad_input("{}: there are {} classes; there must be two or more to tell apart", file, graph.classes);
  if (graph.features > 0) return;
  if (graph.nodes() > most_one_place)
    bad_input("{}: {} nodes have no features; without any at most {} nodes are told apart by their places", file,
              graph.nodes(), most_one_place);
  graph.features = graph.nodes();
  graph.numbers.resize(static_cast<std::size_t>(graph.nodes()) * graph.nodes());
  for (std::size_t i = 0; i < graph.nodes(); ++i) graph.numbers[i * graph.nodes() + i] = 1;
}

std::string hash_of(const NodeGraph& graph) {
  Fingerprint hash;
  for (const std::uint64_t x : graph.first) hash.add(x);
  for (const std::uint32_t x : graph.neighbours) hash.add(std::uint64_t{x});
  for (const std::int32_t x : graph.labels) hash.add(static_cast<std::uint64_t>(x));
  for (const float x : graph.numbers) hash.add(std::uint64_t{std::bit_cast<std::uint32_t>(x)});
  return hash.hex();
}

}  // namespace

NodeGraphPtr read_node_graph(Disk& disk, const std::string& folder) {
  auto graph = std::make_shared<NodeGraph>();
  read_nodes(disk, folder + "/nodes.txt", *graph);
  const std::string file = folder + "/edges.txt";
  std::vector<Edge> edges;
  for_each_line(read_text(disk, file, most_graph_bytes), [&](std::size_t line, const auto& words) {
    if (words.size() != 2) bad_input("{}, line {}: expected a pair of nodes, found {} words", file, line, words.size());
    std::uint32_t ends[2];
    for (int i = 0; i < 2; ++i) {
      ends[i] = number_in<std::uint32_t>(words[static_cast<std::size_t>(i)], file, line, "a node");
      if (ends[i] >= graph->nodes())
        bad_input("{}, line {}: there is no node {} among {}, they count from 0", file, line, ends[i], graph->nodes());
    }
    edges.emplace_back(ends[0], ends[1]);
  });
  fill_in_neighbours(*graph, edges);
  graph->fingerprint = hash_of(*graph);
  return graph;
}

NodeGraphPtr make_communities(const Communities& o) {
  auto graph = std::make_shared<NodeGraph>();
  graph->features = o.features, graph->classes = o.classes;
  const auto n = static_cast<std::uint32_t>(o.nodes), classes = static_cast<std::uint32_t>(o.classes);
  std::vector<Edge> edges;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t label = i % classes;
    graph->labels.push_back(static_cast<std::int32_t>(label));
    const Stream random({.seed = o.seed, .step = i, .layer = stream_layer("data.communities")});
    for (std::int64_t f = 0; f < o.features; ++f) {
      const Stream centre({.seed = o.seed, .step = label, .layer = stream_layer("data.community")});
      graph->numbers.push_back(centre.normal(static_cast<std::uint64_t>(f)) +
                               static_cast<float>(o.noise) * random.normal(static_cast<std::uint64_t>(f)));
    }
    // Each node draws half of its edges; the others are drawn by their other ends.
    const Stream draws({.seed = o.seed, .step = i, .layer = stream_layer("data.community.edges")});
    const double wanted = o.degree / 2;
    const auto count = static_cast<std::uint64_t>(wanted) + (draws.uniform(0) < wanted - std::floor(wanted) ? 1 : 0);
    for (std::uint64_t e = 0; e < count; ++e) {
      const bool own = draws.uniform(1 + 3 * e) < static_cast<float>(o.within);
      const std::uint32_t of_class = own ? label : draws.below(classes, 2 + 3 * e);
      const std::uint32_t members = (n - of_class + classes - 1) / classes;
      if (members > 0) edges.emplace_back(i, of_class + classes * draws.below(members, 3 + 3 * e));
    }
  }
  fill_in_neighbours(*graph, edges);
  graph->fingerprint = hash_of(*graph);
  return graph;
}

std::vector<std::uint32_t> breadth_first(const NodeGraph& graph) {
  std::vector<std::uint32_t> order;
  std::vector<bool> seen(graph.nodes());
  for (std::uint32_t start = 0; start < graph.nodes(); ++start) {
    if (seen[start]) continue;
    seen[start] = true;
    order.push_back(start);
    for (std::size_t at = order.size() - 1; at < order.size(); ++at)
      for (const std::uint32_t other : graph.of(order[at]))
        if (!seen[other]) seen[other] = true, order.push_back(other);
  }
  return order;
}

std::vector<std::uint32_t> within(const NodeGraph& graph, std::span<const std::uint32_t> own, int steps) {
  std::vector<bool> seen(graph.nodes());
  std::vector<std::uint32_t> all;
  for (const std::uint32_t node : own)
    if (!seen[node]) seen[node] = true, all.push_back(node);
  std::size_t begin = 0;
  for (int step = 0; step < steps; ++step) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin)
      for (const std::uint32_t other : graph.of(all[begin]))
        if (!seen[other]) seen[other] = true, all.push_back(other);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace echelon::data
