#include "cli/training/step_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>

#include "base/text.h"
#include "foresight/costs/op_costs.h"

namespace echelon::cli {

namespace {

constexpr std::int64_t warm_up = 3;  // steps: what is new there (buffers, buckets) is not measured
constexpr int most_samples = 12;
constexpr std::size_t most_steps = 20'000;

float median_of(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

StepSampler::StepSampler(Team& team, Engine& engine, bool operations)
    : team_(team), engine_(engine), times_operations_(operations), next_sample_(warm_up) {
  step_seconds_.reserve(256);
}

void StepSampler::on_step(const StepEvent& event) {
  ++steps_;
  const double seconds = event.step_seconds - before_;
  before_ = event.step_seconds;
  if (steps_ > warm_up && !sampling_ && step_seconds_.size() < most_steps)
    step_seconds_.push_back(static_cast<float>(seconds));
  if (sampling_) engine_.watch({});
  sampling_ = times_operations_ && samples_ < most_samples && steps_ >= next_sample_;
  if (!sampling_) return;
  ++samples_;
  next_sample_ = std::max(steps_ + 2, steps_ + steps_ / 2);
  engine_.watch({.now = [&world = team_.world()] { return world.now(); },
                 .on_node =
                     [this](int core, const Node& node, double begin, double end) {
                       if (core == 0 && foresight::OpCosts::computes(node))
                         seconds_[&node].push_back(static_cast<float>(end - begin));
                     }});
}

double StepSampler::step_seconds() const {
  constexpr std::size_t few = 5;
  if (step_seconds_.size() < few) return 0;
  // Of those between: where ranks take turns on a core, a long step may follow a short one, and no median tells.
  std::vector<float> sorted = step_seconds_;
  std::ranges::sort(sorted);
  const auto tenth = static_cast<std::ptrdiff_t>(sorted.size() / 10);
  const std::span middle(sorted.begin() + tenth, sorted.end() - tenth);
  return std::accumulate(middle.begin(), middle.end(), 0.0) / static_cast<double>(middle.size());
}

// A micro-batch of another size (an epoch's last) has nodes of its own: those that ran often count.
std::map<std::string, double> StepSampler::operations() const {
  std::size_t most = 0;
  for (const auto& [node, times] : seconds_) most = std::max(most, times.size());
  std::map<std::string, double> all;
  for (const auto& [node, times] : seconds_)
    if (2 * times.size() > most) all[foresight::OpCosts::name_of(*node)] += static_cast<double>(median_of(times));
  return all;
}

std::vector<std::map<std::string, double>> StepSampler::gather_operations() {
  if (!times_operations_) return {};
  std::string mine;
  for (const auto& [name, seconds] : operations()) mine += fmt::format("{}\t{}\n", name, seconds);
  const std::vector<std::size_t> counts = team_.all_gather_struct(mine.size());
  std::vector<char> text(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  const auto own = counts.begin() + team_.world().rank();
  std::ranges::copy(mine, text.begin() + static_cast<std::ptrdiff_t>(std::accumulate(counts.begin(), own, 0UL)));
  team_.all_gather_structs(std::span(text), counts);
  std::vector<std::map<std::string, double>> ranks;
  std::size_t at = 0;
  for (const std::size_t count : counts) {
    auto& operations = ranks.emplace_back();
    for (const std::string_view line : split({text.data() + at, count}, '\n')) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string_view::npos) continue;
      double seconds = 0;
      std::from_chars(line.data() + tab + 1, line.data() + line.size(), seconds);
      operations[std::string(line.substr(0, tab))] = seconds;
    }
    at += count;
  }
  return ranks;
}

}  // namespace echelon::cli
