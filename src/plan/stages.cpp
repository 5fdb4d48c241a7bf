#include "plan/stages.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace echelon {

namespace {

constexpr double work_of_a_byte = 8;  // that is sent, as floating-point operations
constexpr double infinite_work = std::numeric_limits<double>::infinity();

// best[k][j]: the least of `fold` over the cuts of the first j layers into k stages; cost(k, i, j) of stage k with
// the layers [i, j).
template <typename Cost, typename Fold>
std::vector<std::size_t> best_cut(std::size_t layers, std::size_t stages, const Cost& cost, const Fold& fold,
                                  double& value) {
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(layers + 1, infinite_work));
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(layers + 1, 0));
  best[0][0] = 0;
  for (std::size_t k = 1; k <= stages; ++k)
    for (std::size_t j = k; j <= layers; ++j)
      for (std::size_t i = k - 1; i < j; ++i) {
        const double total = fold(best[k - 1][i], cost(k - 1, i, j));
        if (total < best[k][j]) best[k][j] = total, from[k][j] = i;
      }
  value = best[stages][layers];
  std::vector<std::size_t> ends(stages);
  for (std::size_t k = stages, j = layers; k > 0; j = from[k][j], --k) ends[k - 1] = j;
  return ends;
}

}  // namespace

double work_of(const Graph& graph, const Node& node) {
  double work = node.op->flops(graph.types(node.in), graph.types(node.out));
  if (node.op->is_view()) return work;
  for (Value v : node.out) work += 8 * static_cast<double>(graph.type(v).elements());
  return work;
}

std::vector<LayerWork> layer_work(const Graph& graph) {
  std::vector<LayerWork> layers;
  std::map<std::string, std::size_t> index;
  for (const Node& node : graph.nodes())
    if (!node.backward && !node.layer.empty() && index.emplace(node.layer, layers.size()).second)
      layers.push_back({node.layer});
  // The layers between which each value is needed in forward.
  struct Life {
    std::size_t first = 0, last = 0;
  };
  std::vector<Life> lives(static_cast<std::size_t>(graph.values()));
  for (const Node& node : graph.nodes()) {
    const auto it = index.find(node.layer);
    if (it == index.end()) continue;
    layers[it->second].work += work_of(graph, node);
    if (node.backward) continue;
    for (Value v : node.out) lives[static_cast<std::size_t>(v.id)] = {it->second, it->second};
    for (Value v : node.in)
      if (graph.info(v).source == ValueInfo::Source::node) {
        std::size_t& last = lives[static_cast<std::size_t>(v.id)].last;
        last = std::max(last, it->second);
      }
  }
  for (std::size_t v = 0; v < lives.size(); ++v)
    for (std::size_t layer = lives[v].first; layer < lives[v].last; ++layer)
      layers[layer].sends += static_cast<double>(graph.type({static_cast<int>(v)}).bytes());
  return layers;
}

namespace {

// Which layers may be on a stage: by layer its pin, -1 for none.
template <typename Name>
std::vector<int> pins_of(std::size_t layers, const Name& name, const PinnedStages& pins) {
  std::vector<int> of(layers, -1);
  for (std::size_t i = 0; i < layers; ++i)
    if (const auto it = pins.find(name(i)); it != pins.end()) of[i] = it->second;
  return of;
}

bool may_have(const std::vector<int>& pins, std::size_t stage, std::size_t i, std::size_t j) {
  return std::all_of(pins.begin() + static_cast<std::ptrdiff_t>(i), pins.begin() + static_cast<std::ptrdiff_t>(j),
                     [&](int pin) { return pin < 0 || pin == static_cast<int>(stage); });
}

}  // namespace

bool can_cut_into_stages(const std::vector<std::string>& layers, int stages, const PinnedStages& pins) {
  if (stages < 1 || static_cast<std::size_t>(stages) > layers.size()) return false;
  const auto of = pins_of(
      layers.size(), [&](std::size_t i) { return layers[i]; }, pins);
  double value = 0;
  if (pins.empty()) return true;
  best_cut(
      layers.size(), static_cast<std::size_t>(stages),
      [&](std::size_t k, std::size_t i, std::size_t j) { return may_have(of, k, i, j) ? 0 : infinite_work; },
      [](double a, double b) { return a + b; }, value);
  return value < infinite_work;
}

StagePartition cut_into_stages(const std::vector<LayerWork>& layers, int stages, const PinnedStages& pins) {
  const auto count = static_cast<std::size_t>(stages);
  invariant(count >= 1 && count <= layers.size(), "a stage has at least one layer");
  const auto pin = pins_of(
      layers.size(), [&](std::size_t i) { return layers[i].layer; }, pins);
  std::vector<double> before{0};
  for (const LayerWork& l : layers) before.push_back(before.back() + l.work);
  const auto work = [&](std::size_t k, std::size_t i, std::size_t j) {
    return may_have(pin, k, i, j) ? before[j] - before[i] : infinite_work;
  };

  double largest = 0, squares = 0;
  best_cut(
      layers.size(), count, work, [](double a, double b) { return std::max(a, b); }, largest);
  invariant(largest < infinite_work, "layers are pinned to stages in the order in which they run");
  // One long stage decides the largest; the others are still to be alike.
  const auto unevenness = [&](std::size_t k, std::size_t i, std::size_t j) {
    if (work(k, i, j) > 1.02 * largest) return infinite_work;
    const double all = work(k, i, j) + (j < layers.size() ? work_of_a_byte * layers[j - 1].sends : 0.0);
    return all * all;
  };
  const auto ends = best_cut(
      layers.size(), count, unevenness, [](double a, double b) { return a + b; }, squares);

  StagePartition partition;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    auto& names = partition.layers.emplace_back();
    for (; begin < end; ++begin) {
      partition.stage_of[layers[begin].layer] = partition.stages() - 1;
      names.push_back(layers[begin].layer);
    }
  }
  return partition;
}

StagePartition cut_at(const std::vector<LayerWork>& layers, const std::vector<std::string>& cuts) {
  StagePartition partition;
  partition.layers.emplace_back();
  for (const LayerWork& l : layers) {
    if (partition.layers.size() <= cuts.size() && l.layer == cuts[partition.layers.size() - 1])
      partition.layers.emplace_back();
    partition.layers.back().push_back(l.layer);
    partition.stage_of[l.layer] = partition.stages() - 1;
  }
  invariant(partition.layers.size() == cuts.size() + 1, "a plan's cuts have been checked");
  return partition;
}

}  // namespace echelon
