#include "parallel/step/halo.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "data/graph/neighbourhoods.h"

namespace echelon {

namespace {

using data::NodeGraph;

// The rows that one worker has: nothing else of the features can be read.
class HeldFeatures : public data::NodeFeatures {
 public:
  HeldFeatures(std::size_t width, std::vector<std::uint32_t> nodes)
      : width_(width), nodes_(std::move(nodes)), rows_(nodes_.size() * width) {}
  std::span<const float> row(std::uint32_t node) const override { return place(node); }
  std::span<float> place(std::uint32_t node) const {
    const auto at = std::ranges::lower_bound(nodes_, node);
    invariant(at != nodes_.end() && *at == node, "a worker has the features that its samples need");
    return std::span(rows_).subspan(static_cast<std::size_t>(at - nodes_.begin()) * width_, width_);
  }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> nodes_;  // ascending
  mutable std::vector<float> rows_;
};

class HeldNeighbourhoods : public data::Dataset {
 public:
  HeldNeighbourhoods(data::DatasetPtr inner, std::shared_ptr<const HeldFeatures> features)
      : Dataset(inner->info()), inner_(std::move(inner)), features_(std::move(features)) {}
  void get(std::uint64_t index, const data::SampleContext& context, data::SampleRef out) const override {
    const data::Neighbourhood& of = *info().neighbourhood;
    of.fill(of.nodes[inner_->origin(index, context)], context, *features_, out);
  }
  std::uint64_t origin(std::uint64_t index, const data::SampleContext& context) const override {
    return inner_->origin(index, context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(index); }

 private:
  data::DatasetPtr inner_;
  std::shared_ptr<const HeldFeatures> features_;
};

std::vector<std::uint32_t> nodes_of(const data::Dataset& samples, const std::vector<std::uint64_t>& indices) {
  std::vector<std::uint32_t> nodes;
  for (const std::uint64_t i : indices) nodes.push_back(samples.info().neighbourhood->nodes[samples.origin(i, {})]);
  return nodes;
}

}  // namespace

data::DatasetPtr with_halo(data::DatasetPtr inner, const data::BatchSequence& batches,
                           const data::PartitionSpec& partition, Team& team, Halo* counted) {
  const data::Neighbourhood* const of = inner->info().neighbourhood.get();
  const int n = team.world().size();
  if (!of || !partition.fixed || n == 1) return inner;
  const NodeGraph& graph = *of->graph;
  const auto width = static_cast<std::size_t>(graph.features);
  const int steps = static_cast<int>(of->sizes.size());
  // Every worker knows who needs what: the graph's edges are everywhere, its features are not.
  const std::vector<std::uint32_t> order = data::breadth_first(graph);
  std::vector<int> owner(graph.nodes());
  for (int w = 0; w < n; ++w)
    for (std::size_t i = order.size() * static_cast<std::size_t>(w) / static_cast<std::size_t>(n);
         i < order.size() * (static_cast<std::size_t>(w) + 1) / static_cast<std::size_t>(n); ++i)
      owner[order[i]] = w;
  const auto parts =
      data::samples_of_parts(*inner, data::part_sizes(batches, static_cast<std::uint64_t>(n)), partition.dirichlet);
  const auto needs = [&](int w) {
    return data::within(graph, nodes_of(*inner, parts[static_cast<std::size_t>(w)]), steps);
  };
  const int self = team.world().rank();
  std::vector<std::uint32_t> held = needs(self), borrowed;
  std::ranges::copy_if(held, std::back_inserter(borrowed), [&](std::uint32_t v) { return owner[v] != self; });
  for (std::uint32_t v = 0; v < graph.nodes(); ++v)
    if (owner[v] == self) held.push_back(v);
  std::ranges::sort(held);
  held.erase(std::ranges::unique(held).begin(), held.end());
  auto features = std::make_shared<HeldFeatures>(width, held);
  for (const std::uint32_t v : held)
    if (owner[v] == self) std::ranges::copy(graph.row(v), features->place(v).begin());

  std::vector<float> out, in(borrowed.size() * width);
  std::vector<Range> out_parts, in_parts;
  for (int w = 0; w < n; ++w) {
    const std::size_t begin = out.size();
    if (w != self)
      for (const std::uint32_t v : needs(w))
        if (owner[v] == self) out.insert(out.end(), features->row(v).begin(), features->row(v).end());
    out_parts.push_back({begin, out.size()});
  }
  std::ranges::stable_sort(borrowed, {}, [&](std::uint32_t v) { return owner[v]; });
  std::size_t at = 0;
  for (int w = 0; w < n; ++w) {
    const auto count =
        static_cast<std::size_t>(std::ranges::count(borrowed, w, [&](std::uint32_t v) { return owner[v]; }));
    in_parts.push_back({at, at + count * width});
    at += count * width;
  }
  if (out.empty()) out.resize(1);  // distinct memory
  if (in.empty()) in.resize(1);
  all_to_all(team.group(), const_typed_span(std::span(std::as_const(out))), out_parts, typed_span(std::span(in)),
             in_parts, "halo");
  for (std::size_t i = 0; i < borrowed.size(); ++i)
    std::ranges::copy(std::span(in).subspan(i * width, width), features->place(borrowed[i]).begin());
  if (counted) *counted = {held.size() - borrowed.size(), borrowed.size()};
  return std::make_shared<HeldNeighbourhoods>(std::move(inner), std::move(features));
}

}  // namespace echelon
