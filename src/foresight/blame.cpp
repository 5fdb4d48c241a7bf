#include "foresight/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace echelon::foresight {

namespace {

double value_in(const auto& map, const auto& key) {
  const auto it = map.find(key);
  return it == map.end() ? 0.0 : it->second;
}

std::string in_milliseconds(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

double all_operations(const std::map<std::string, double>& operations) {
  double sum = 0;
  for (const auto& [name, seconds] : operations) sum += seconds;
  return sum;
}

std::string name_wait(const Prediction& p, int rank, int other) {
  std::string text = fmt::format("the wait of rank {} for rank {}", rank, other);
  if (static_cast<std::size_t>(other) < p.ranks.size())
    if (const double bytes = value_in(p.ranks[static_cast<std::size_t>(other)].sent_to, rank); bytes > 0)
      text += fmt::format(", whose link brings it {} a step,", human_bytes(bytes));
  return text;
}

}  // namespace

std::vector<Difference> differences(const Prediction& predicted, const std::vector<RankOutcome>& measured) {
  std::map<std::string, Difference> worst;  // of each operation
  std::vector<Difference> all;
  const std::size_t ranks = std::min(predicted.ranks.size(), measured.size());
  for (std::size_t r = 0; r < ranks; ++r) {
    const RankPrediction& p = predicted.ranks[r];
    const RankOutcome& m = measured[r];
    for (const auto& [name, seconds] : m.operations) {
      const Difference d{ranks > 1 ? fmt::format("{} on rank {}", name, r) : name,
                         p.runs * value_in(p.operations, name), p.runs * seconds};
      Difference& other = worst[name];
      if (other.what.empty() || std::abs(d.longer()) > std::abs(other.longer())) other = d;
    }
    if (!m.operations.empty())
      all.push_back({fmt::format("computing of rank {} besides its operations", r),
                     std::max(0.0, p.compute - p.runs * all_operations(p.operations)),
                     std::max(0.0, m.compute - p.runs * all_operations(m.operations))});
    else if (m.compute > 0)
      all.push_back({fmt::format("computing of rank {}", r), p.compute, m.compute});
    if (ranks > 1) all.push_back({fmt::format("the sums and the update of rank {}", r), p.exchange, m.exchange});
    for (const auto& [other, seconds] : m.waits)
      all.push_back({name_wait(predicted, static_cast<int>(r), other), value_in(p.waits, other), seconds});
  }
  for (auto& [name, difference] : worst) all.push_back(std::move(difference));
  std::ranges::stable_sort(all, std::greater{}, [](const Difference& d) { return std::abs(d.longer()); });
  return all;
}

std::string blame(const Prediction& predicted, double step, const std::vector<RankOutcome>& measured) {
  if (!(step > 0) || std::abs(predicted.seconds / step - 1) <= 0.2) return "";
  std::string text = fmt::format("a step took {} and was predicted to take {} ({:+.0f} %)", in_milliseconds(step),
                                 in_milliseconds(predicted.seconds), 100 * (predicted.seconds / step - 1));
  int named = 0;
  for (const Difference& d : differences(predicted, measured)) {
    const bool same_way = (d.longer() > 0) == (step > predicted.seconds);
    if (!same_way || std::abs(d.longer()) < 0.02 * step || named == 3) continue;
    text += fmt::format("{} {} took {} instead of {}", named++ == 0 ? ":" : ";", d.what, in_milliseconds(d.measured),
                        in_milliseconds(d.predicted));
  }
  if (predicted.measured < 0.9)
    text += fmt::format("; {:.0f} % of the computing was never measured here", 100 * (1 - predicted.measured));
  return text;
}

bool refit(Profile& profile, const Prediction& predicted, const std::vector<RankOutcome>& measured) {
  struct Change {
    double seconds = 0, ratio = 1;
  };
  std::map<std::pair<std::string, std::string>, Change>
      least;  // of ranks and layers: one alone may have been disturbed
  const std::size_t ranks = std::min(predicted.ranks.size(), measured.size());
  for (const auto& [name, keys] : predicted.profiled)
    for (std::size_t r = 0; r < ranks; ++r) {
      const RankPrediction& p = predicted.ranks[r];
      // A correction is of what the profile knows nothing of: its costs are held against what was measured without it.
      const double before = value_in(p.operations, name) / predicted.correction;
      const double after = value_in(measured[r].operations, name);
      if (before <= 0 || after <= 0) continue;
      const Change change{p.runs * std::abs(after - before), std::clamp(after / before, 0.1, 10.0)};
      for (const auto& key : keys)
        if (const auto [at, is_new] = least.try_emplace(key, change); !is_new && change.seconds < at->second.seconds)
          at->second = change;
    }
  bool changed = false;
  for (const auto& [key, change] : least) {
    if (change.seconds < 0.02 * predicted.seconds || std::abs(change.ratio - 1) <= 0.2) continue;
    const auto& [family, shapes] = key;
    const auto of_family = profile.ops.families().find(family);
    if (of_family == profile.ops.families().end() || !of_family->second.contains(shapes)) continue;
    OpCost cost = of_family->second.at(shapes);
    cost.seconds.together *= change.ratio;
    if (predicted.busy <= 1) {
      cost.seconds.alone *= change.ratio;
      cost.seconds.together = std::max(cost.seconds.together, cost.seconds.alone);
    } else {  // a core alone is never slower
      cost.seconds.alone = std::min(cost.seconds.alone, cost.seconds.together);
    }
    profile.ops.set(family, shapes, cost);
    changed = true;
  }
  return changed;
}

}  // namespace echelon::foresight
