#include "data/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "data/graph/neighbourhoods.h"
#include "data/permutation.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t partition_seed = 0;  // the same parts whatever the seed of the run

// From a gamma distribution of that shape (Marsaglia and Tsang 2000).
double draw_gamma(const Stream& random, double shape) {
  const double boost = shape < 1 ? std::pow(std::max(1e-7, static_cast<double>(random.uniform(0))), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t attempt = 0; attempt < 64; ++attempt) {
    const double x = random.normal(4 + 4 * attempt), v = std::pow(1 + c * x, 3);
    const double u = std::max(1e-7, static_cast<double>(random.uniform(6 + 4 * attempt)));
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost * d * v;
  }
  return boost * d;
}

// A part's shares of the classes, in steps of 2^-20: a last bit in which machines may differ is gone.
std::vector<double> draw_shares(std::uint32_t part, double dirichlet, const std::vector<std::uint64_t>& counts) {
  const double all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  std::vector<double> shares(counts.size());
  for (std::size_t k = 0; k < counts.size(); ++k)
    if (counts[k] > 0)
      shares[k] = draw_gamma(Stream({.seed = partition_seed,
                                     .step = static_cast<std::uint32_t>(k),
                                     .shard = part,
                                     .layer = stream_layer("data.partition")}),
                             dirichlet * static_cast<double>(counts.size()) * static_cast<double>(counts[k]) / all);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = sum > 0 ? std::floor(share / sum * 0x1p20 + 0.5) * 0x1p-20 : 0;
  return shares;
}

// All samples, part by part. Every part takes samples of a class as its shares say, as long as there are any.
std::vector<std::uint64_t> deal_by_class(const Dataset& samples, const std::vector<std::uint64_t>& order,
                                         const std::vector<std::uint64_t>& sizes, double dirichlet) {
  std::vector<std::vector<std::uint64_t>> left(static_cast<std::size_t>(samples.info().classes));  // of each class
  for (const std::uint64_t i : order) left[static_cast<std::size_t>(samples.label(i))].push_back(i);
  std::vector<std::uint64_t> counts;
  for (const auto& of_class : left) counts.push_back(of_class.size());
  std::vector<std::uint64_t> dealt;
  for (std::size_t part = 0; part < sizes.size(); ++part) {
    const std::vector<double> shares = draw_shares(static_cast<std::uint32_t>(part), dirichlet, counts);
    std::vector<double> due(shares.size());
    for (std::uint64_t n = 0; n < sizes[part]; ++n) {
      // The class that is furthest behind its share; where those have run out, the one with most samples left.
      std::size_t best = left.size();
      for (std::size_t k = 0; k < left.size(); ++k) {
        due[k] += shares[k];
        if (left[k].empty()) continue;
        if (best == left.size() || due[k] > due[best] || (due[k] == due[best] && left[k].size() > left[best].size()))
          best = k;
      }
      due[best] -= 1;
      dealt.push_back(left[best].back());
      left[best].pop_back();
    }
  }
  return dealt;
}

// The samples of a graph's nodes so that neighbours stand near each other.
std::vector<std::uint64_t> neighbours_together(const Dataset& samples) {
  const Neighbourhood& of = *samples.info().neighbourhood;
  std::vector<std::uint64_t> sample_of(of.graph->nodes(), samples.size()), order;
  for (std::uint64_t i = 0; i < samples.size(); ++i) sample_of[of.nodes[samples.origin(i, {})]] = i;
  for (const std::uint32_t node : breadth_first(*of.graph))
    if (sample_of[node] < samples.size()) order.push_back(sample_of[node]);
  return order;
}

// All samples, part by part.
std::vector<std::uint64_t> partition_order(const Dataset& samples, const std::vector<std::uint64_t>& sizes,
                                           double dirichlet) {
  std::vector<std::uint64_t> order;
  const Permutation permutation(partition_seed, /*epoch=*/0, samples.size());
  for (std::uint64_t i = 0; i < samples.size(); ++i) order.push_back(permutation(i));
  if (dirichlet > 0) return deal_by_class(samples, order, sizes, dirichlet);
  return samples.info().neighbourhood ? neighbours_together(samples) : order;
}

class Partitioned : public Dataset {
 public:
  Partitioned(DatasetPtr inner, const std::vector<std::uint64_t>& sizes, double dirichlet)
      : Dataset(inner->info()), inner_(std::move(inner)) {
    if (info().streams > 0)
      bad_input("data.partition = \"fixed\" shuffles samples, but a text read as streams stays in order");
    if (dirichlet > 0 && !has_labels(info()))
      bad_input("data.dirichlet makes the classes of the parts unlike, but a sample has no one class: leave it out");
    order_ = partition_order(*inner_, sizes, dirichlet);
    std::uint64_t at = 0;
    for (const std::uint64_t size : sizes) ends_.push_back(at += size);
    invariant(at <= order_.size(), "the parts have no more samples than there are");
    info().size = at;
    info().random = true;
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(sample(index, context), context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(sample(index, context), context);
  }

 private:
  std::uint64_t sample(std::uint64_t index, const SampleContext& context) const {
    const auto part = std::ranges::upper_bound(ends_, index) - ends_.begin();
    const std::uint64_t first = part == 0 ? 0 : ends_[static_cast<std::size_t>(part) - 1];
    const std::uint64_t size = ends_[static_cast<std::size_t>(part)] - first;
    const std::uint64_t seed = context.seed + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(part + 1);
    return order_[first + Permutation(seed, context.epoch, size)(index - first)];
  }

  DatasetPtr inner_;
  std::vector<std::uint64_t> order_;  // of all samples: part by part
  std::vector<std::uint64_t> ends_;   // of the parts in it
};

}  // namespace

PartitionSpec read_partition(OptionReader& table) {
  PartitionSpec spec;
  spec.fixed = table.choice("partition", "epoch", {"epoch", "fixed"}) == "fixed";
  spec.dirichlet = table.number("dirichlet", 0, 0, 1e6);
  if (spec.dirichlet > 0 && !spec.fixed)
    table.problem("dirichlet",
                  "makes the samples of workers unlike, which is for workers that keep theirs: set "
                  "data.partition = \"fixed\"");
  if (spec.dirichlet > 0 && spec.dirichlet < 1e-3)
    table.problem("dirichlet", "lies between 0.001 and 1000000, or is 0");
  return spec;
}

std::vector<std::uint64_t> part_sizes(const BatchSequence& batches, std::uint64_t parts) {
  std::vector<std::uint64_t> sizes(parts);
  const std::uint64_t steps = batches.steps_before(1);
  const IndexRange first = batches.at(0).samples, last = batches.at(steps - 1).samples;
  for (std::uint64_t p = 0; p < parts; ++p)
    sizes[p] = (steps - 1) * shard_samples(first, p, parts).count + shard_samples(last, p, parts).count;
  return sizes;
}

std::vector<std::vector<std::uint64_t>> samples_of_parts(const Dataset& inner, const std::vector<std::uint64_t>& sizes,
                                                         double dirichlet) {
  const std::vector<std::uint64_t> order = partition_order(inner, sizes, dirichlet);
  std::vector<std::vector<std::uint64_t>> parts;
  auto at = order.begin();
  for (const std::uint64_t size : sizes) {
    parts.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
    at += static_cast<std::ptrdiff_t>(size);
  }
  return parts;
}

DatasetPtr partitioned(DatasetPtr inner, const std::vector<std::uint64_t>& sizes, double dirichlet) {
  return std::make_shared<Partitioned>(std::move(inner), sizes, dirichlet);
}

}  // namespace echelon::data
