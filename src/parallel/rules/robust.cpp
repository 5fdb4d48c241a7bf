#include "parallel/rules/robust.h"

#include <cmath>
#include <limits>

namespace echelon::rules {

namespace {

class RobustWorker : public GradientSide {
 public:
  using GradientSide::GradientSide;
  void apply(Range range, std::span<const float> answer) override {
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::copy(view_.gradient.data() + begin, answer.data() + (begin - range.begin), n);
    });
  }
};

}  // namespace

void RobustRule::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  refuse(problems, !c.exchange->traits().keeps_apart,
         fmt::format("rule {} compares the workers' gradients one with the other, but exchange {} does not keep them "
                     "apart: take exchange all_to_all, or rule grad_mean",
                     c.rule_name, c.exchange_name));
  refuse(problems, facts.workers > 0 && liars_.said > std::max(0, most_liars(facts.workers)),
         fmt::format("rule {} bears {} liars among {} workers ({}), not {}: lower rule.liars, or take more workers",
                     c.rule_name, std::max(0, most_liars(facts.workers)), facts.workers, condition(), liars_.said));
}

std::unique_ptr<WorkerSide> RobustRule::make_worker(const ReplicaView& view) const {
  return std::make_unique<RobustWorker>(view);
}

std::vector<double> squared_distances(std::span<const double> products, std::size_t n) {
  std::vector<double> distances(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double d = products[i * n + i] + products[j * n + j] - 2 * products[i * n + j];
      distances[i * n + j] = i == j ? 0 : std::isfinite(d) ? d : std::numeric_limits<double>::infinity();
    }
  return distances;
}

std::size_t nearest_to_others(std::span<const double> distances, std::size_t n, const std::vector<std::size_t>& left,
                              std::size_t count) {
  std::size_t best = left.front();
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> to_others;
  for (const std::size_t i : left) {
    to_others.clear();
    for (const std::size_t j : left)
      if (j != i) to_others.push_back(distances[i * n + j]);
    std::ranges::sort(to_others);
    double score = 0;
    for (std::size_t k = 0; k < std::min(count, to_others.size()); ++k) score += to_others[k];
    if (score < least) least = score, best = i;
  }
  return best;
}

void mean_of(std::span<const std::span<const float>> each, const std::vector<std::size_t>& chosen,
             std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (const std::size_t i : chosen)
    kernels::axpy(out.data(), 1.0f / static_cast<float>(chosen.size()), each[i].data(), out.size());
}

}  // namespace echelon::rules
