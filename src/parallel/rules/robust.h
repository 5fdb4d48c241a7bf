#pragma once
// What the rules have in common that keep some workers from spoiling the gradient: they see every worker's
// contribution by itself, and every worker takes the same step from what they make of all.

#include <vector>

#include "parallel/rules/common.h"

namespace echelon::rules {

// How many workers may lie: what the recipe says; 0 is a fifth of them, or as many as the rule bears.
struct Liars {
  std::int64_t said = 0;
  int among(int workers, int most) const {
    return static_cast<int>(said > 0 ? said : std::min<std::int64_t>(workers / 5, most));
  }
};

inline Setting liars_setting() {
  return {"liars", "0", "workers that may lie; 0: a fifth of them, or as many as the rule bears"};
}
inline Liars read_liars(OptionReader& options) { return {options.integer("liars", 0, 0, 1'000'000)}; }

class RobustRule : public MergeRule {
 public:
  RobustRule(Liars liars, bool compares) : liars_(liars), compares_(compares) {}
  RuleTraits traits() const override { return {.sees_each = true, .compares_each = compares_}; }
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override;

 protected:
  // The most liars that the rule bears among so many workers, and what it asks for, in words.
  virtual int most_liars(int workers) const = 0;
  virtual std::string condition() const = 0;
  int liars_among(int workers) const { return liars_.among(workers, std::max(0, most_liars(workers))); }
  Liars liars_;

 private:
  bool compares_;
};

// The squared distance of each pair; infinite where a contribution is no number.
std::vector<double> squared_distances(std::span<const double> products, std::size_t n);

// Krum's choice among the workers `left`: the one whose nearest neighbours, `count` of them, are nearest.
std::size_t nearest_to_others(std::span<const double> distances, std::size_t n, const std::vector<std::size_t>& left,
                              std::size_t count);

// out = the mean of those contributions.
void mean_of(std::span<const std::span<const float>> each, const std::vector<std::size_t>& chosen,
             std::span<float> out);

// One element of every contribution at a time, in ascending order (what is no number comes last): f(i, sorted).
template <typename F>
void for_each_element(std::span<const std::span<const float>> each, std::size_t count, const F& f) {
  std::vector<float> column(each.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t w = 0; w < each.size(); ++w) column[w] = each[w][i];
    std::ranges::sort(column, [](float a, float b) { return !(a != a) && (b != b || a < b); });
    f(i, std::span<const float>(column));
  }
}

}  // namespace echelon::rules
