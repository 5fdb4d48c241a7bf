#include "data/graph/neighbourhoods.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "data/files/fingerprint.h"

namespace echelon::data {

namespace {

constexpr std::int64_t most_rows = 1 << 20;
constexpr std::uint32_t nobody = ~std::uint32_t{0};

class AllFeatures : public NodeFeatures {
 public:
  explicit AllFeatures(const NodeGraph& graph) : graph_(graph) {}
  std::span<const float> row(std::uint32_t node) const override { return graph_.row(node); }

 private:
  const NodeGraph& graph_;
};

// Writes a level of the tree: each of `parents` has room for `size` neighbours.
std::vector<std::uint32_t> draw_level(const NodeGraph& graph, const std::vector<std::uint32_t>& parents,
                                      std::int64_t size, const Stream& random) {
  std::vector<std::uint32_t> level;
  std::vector<std::uint32_t> all;
  std::uint64_t drawn = 0;
  for (const std::uint32_t parent : parents) {
    const auto before = level.size();
    if (parent != nobody) {
      const auto neighbours = graph.of(parent);
      all.assign(neighbours.begin(), neighbours.end());
      const auto count = std::min<std::size_t>(all.size(), static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < count; ++i) {
        if (count < all.size())
          std::swap(all[i], all[i + random.below(static_cast<std::uint32_t>(all.size() - i), drawn++)]);
        level.push_back(all[i]);
      }
    }
    level.resize(before + static_cast<std::size_t>(size), nobody);
  }
  return level;
}

class Neighbourhoods : public Dataset {
 public:
  Neighbourhoods(DatasetInfo info, std::shared_ptr<const Neighbourhood> of)
      : Dataset(std::move(info)), of_(std::move(of)), features_(*of_->graph) {}
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    of_->fill(of_->nodes[index], context, features_, out);
  }
  std::int32_t label(std::uint64_t index) const override { return of_->graph->labels[of_->nodes[index]]; }

 private:
  std::shared_ptr<const Neighbourhood> of_;
  AllFeatures features_;
};

}  // namespace

void Neighbourhood::fill(std::uint32_t node, const SampleContext& context, const NodeFeatures& features,
                         SampleRef out) const {
  const auto width = static_cast<std::size_t>(graph->features);
  const auto of = [&](std::uint32_t v) { return static_cast<double>(graph->degree(v)) + 1; };
  std::vector<std::uint32_t> parents, level{node};
  for (std::size_t l = 0;; ++l) {
    auto* row = reinterpret_cast<float*>(out[l]);
    for (std::size_t i = 0; i < level.size(); ++i, row += width + node_columns) {
      const std::uint32_t v = level[i];
      if (v == nobody) {
        std::fill_n(row, width + node_columns, 0.0f);
        row[width + absent_column] = -1e9f;
        continue;
      }
      std::ranges::copy(features.row(v), row);
      float* const place = row + width;
      place[self_column] = static_cast<float>(1 / of(v));
      place[edge_column] = place[mean_column] = place[absent_column] = 0;
      if (l == 0) continue;
      const std::uint32_t parent = parents[i / static_cast<std::size_t>(sizes[l - 1])];
      const double all = static_cast<double>(graph->degree(parent)),
                   here = std::min(all, static_cast<double>(sizes[l - 1]));
      place[edge_column] = static_cast<float>(all / here / std::sqrt(of(v) * of(parent)));
      place[mean_column] = static_cast<float>(1 / here);
    }
    if (l == sizes.size()) break;
    parents = std::move(level);
    const Stream random({.seed = context.seed,
                         .step = context.epoch,
                         .shard = node,
                         .layer = stream_layer("data.neighbours") + static_cast<std::uint32_t>(l)});
    level = draw_level(*graph, parents, sizes[l], random);
  }
  const std::int32_t label = graph->labels[node];
  std::memcpy(out[sizes.size() + 1], &label, sizeof label);
}

std::shared_ptr<const Dataset> make_neighbourhoods(NodeGraphPtr graph, std::vector<std::int64_t> sizes) {
  std::uint64_t most = 1;
  for (std::uint32_t v = 0; v < graph->nodes(); ++v) most = std::max(most, graph->degree(v));
  auto of = std::make_shared<Neighbourhood>();
  DatasetInfo info;
  Shape shape{};
  std::vector<std::int64_t> dims;
  std::int64_t rows = 1;
  bool draws = false;
  for (std::size_t l = 0; l <= sizes.size(); ++l) {
    if (l > 0) {
      std::int64_t& size = sizes[l - 1];
      if (size == 0) size = static_cast<std::int64_t>(most);
      draws = draws || static_cast<std::uint64_t>(size) < most;
      rows *= size;
      if (rows > most_rows)
        bad_input(
            "a node with {} levels of neighbours has more than {} rows: take fewer with data.neighbours, or "
            "fewer levels",
            l, most_rows);
      dims.push_back(size);
    }
    std::vector<std::int64_t> extents = dims;
    extents.push_back(graph->features + node_columns);
    info.fields.push_back({l == 0 ? "node" : fmt::format("neighbours{}", l), DType::f32, Shape(extents)});
  }
  info.inputs = sizes.size() + 1;
  info.fields.push_back({"label", DType::i32, {}});
  for (std::uint32_t v = 0; v < graph->nodes(); ++v)
    if (graph->labels[v] >= 0) of->nodes.push_back(v);
  info.size = of->nodes.size();
  info.classes = graph->classes;
  info.random = draws;
  Fingerprint hash;
  hash.add(graph->fingerprint);
  for (const std::int64_t size : sizes) hash.add(static_cast<std::uint64_t>(size));
  info.fingerprint = hash.hex();
  of->sizes = std::move(sizes);
  of->graph = std::move(graph);
  info.neighbourhood = of;
  return std::make_shared<Neighbourhoods>(std::move(info), std::move(of));
}

}  // namespace echelon::data
