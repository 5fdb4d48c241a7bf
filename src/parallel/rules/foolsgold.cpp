// FoolsGold (Fung et al. 2020): workers whose gradients, added up over all steps, point the same way are taken for
// one that goes by several names, and count little; those that differ from all others count fully. Honest workers have
// to differ, by data of their own. How much a worker counts:
//
//   v_i = max over j of cos(h_i, h_j), h the sums;  cos(h_i, h_j) *= v_i / v_j where v_i < v_j     pardons the honest
//   a_i = 1 - max over j, divided by the largest;   ln(a_i / (1 - a_i)) + 0.5, between 0 and 1
//
// Here the step is the mean with these weights, so that its size does not depend on them.

#include <cmath>

#include "parallel/rules/robust.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

std::vector<double> trust_in(std::span<const double> products, std::size_t n) {
  std::vector<double> cosine(n * n), most(n, -1);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double lengths = std::sqrt(products[i * n + i] * products[j * n + j]);
      cosine[i * n + j] = lengths > 0 ? products[i * n + j] / lengths : 0;
      if (i != j) most[i] = std::max(most[i], cosine[i * n + j]);
    }
  std::vector<double> trust(n);
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double alike = -1;
    for (std::size_t j = 0; j < n; ++j)
      if (i != j)
        alike = std::max(alike,
                         most[i] < most[j] && most[j] > 0 ? cosine[i * n + j] * most[i] / most[j] : cosine[i * n + j]);
    trust[i] = std::clamp(1 - alike, 0.0, 1.0);
    largest = std::max(largest, trust[i]);
  }
  for (double& t : trust) {
    if (largest > 0) t /= largest;
    t = t >= 1 ? 1 : t <= 0 ? 0 : std::clamp(std::log(t / (1 - t)) + 0.5, 0.0, 1.0);
  }
  return trust;
}

class FoolsGoldEach : public EachSide {
 public:
  FoolsGoldEach(std::size_t floats, int workers) : floats_(floats), sums_(zeros(floats * workers)) {
    for (int w = 0; w < workers; ++w) history_.push_back(sum_of(static_cast<std::size_t>(w)));
  }
  void compare(std::span<const std::span<const float>> each, std::span<double> products) override {
    for (std::size_t w = 0; w < each.size(); ++w) {
      const std::span<float> sum = sum_of(w);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += std::isfinite(each[w][i]) ? each[w][i] : 0;
    }
    EachSide::compare(history_, products);
  }
  void merge(std::span<const std::span<const float>> each, std::span<const double> products,
             std::span<float> out) override {
    std::vector<double> trust = trust_in(products, each.size());
    double all = 0;
    for (const double t : trust) all += t;
    if (all == 0) trust.assign(each.size(), 1), all = static_cast<double>(each.size());  // they are all alike
    std::ranges::fill(out, 0.0f);
    for (std::size_t w = 0; w < each.size(); ++w)
      if (trust[w] > 0) kernels::axpy(out.data(), static_cast<float>(trust[w] / all), each[w].data(), out.size());
  }
  std::vector<StateSpan> state() override { return {as_state("sums", sums_)}; }

 private:
  std::span<float> sum_of(std::size_t worker) { return sums_.as<float>().subspan(worker * floats_, floats_); }
  std::size_t floats_;
  Buffer sums_;  // of every worker's contributions since the start
  std::vector<std::span<const float>> history_;
};

class FoolsGold : public RobustRule {
 public:
  FoolsGold() : RobustRule({}, true) {}
  std::unique_ptr<EachSide> make_each(std::size_t floats, int workers) const override {
    return std::make_unique<FoolsGoldEach>(floats, workers);
  }

 private:
  int most_liars(int workers) const override { return workers - 1; }
  std::string condition() const override { return "one is honest"; }
};

}  // namespace

RulePart foolsgold() {
  return {{"foolsgold", "workers whose gradients have always pointed the same way count little", {}},
          [](OptionReader&) -> std::unique_ptr<const MergeRule> { return std::make_unique<FoolsGold>(); }};
}

}  // namespace echelon::rules
