#include "cli/training/histogram_listener.h"

#include <algorithm>
#include <cmath>

namespace echelon::cli {

Json histogram(std::span<const float> numbers, int bins) {
  float low = INFINITY, high = -INFINITY;
  for (const float n : numbers)
    if (std::isfinite(n)) low = std::min(low, n), high = std::max(high, n);
  if (low > high) return nullptr;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
  const double width = static_cast<double>(high) - low;
  for (const float n : numbers) {
    if (!std::isfinite(n)) continue;
    const double at = width > 0 ? (static_cast<double>(n) - low) / width : 0.5;
    ++counts[std::min(counts.size() - 1, static_cast<std::size_t>(at * bins))];
  }
  return {{"low", low}, {"high", high}, {"counts", counts}};
}

HistogramListener::HistogramListener(Disk& disk, const RunFolder& folder, Engine& engine)
    : engine_(engine), log_(disk, folder.histograms()) {}

void HistogramListener::on_evaluation(const EvaluationEvent& event) {
  if (!works_ || event.tested_step >= 0 || event.step < next_) return;
  next_ = event.step + std::max<std::int64_t>(1, event.step / 50);
  const auto& entries = engine_.table().entries();
  const std::span<const float> model = engine_.model();
  const std::span<const float> gradient = engine_.gradient();
  before_.resize(entries.size());
  Json tensors = Json::array();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto count = entries[i].size;
    const std::size_t stride = std::max<std::size_t>(1, count / most_elements);
    std::vector<float> taken;
    for (std::size_t e = 0; e < count; e += stride) taken.push_back(model[entries[i].offset + e]);
    Json tensor{{"name", entries[i].parameter.name}, {"weights", histogram(taken)}};
    if (before_[i].size() == taken.size()) {
      std::vector<float> change(taken.size());
      std::ranges::transform(taken, before_[i], change.begin(), std::minus{});
      tensor["change"] = histogram(change);
    }
    before_[i] = std::move(taken);
    if (gradient.size() >= entries[i].offset + count) {
      std::vector<float> pushed;
      for (std::size_t e = 0; e < count; e += stride) pushed.push_back(gradient[entries[i].offset + e]);
      if (std::ranges::any_of(pushed, [](float g) { return g != 0; })) tensor["gradient"] = histogram(pushed);
    }
    tensors.push_back(std::move(tensor));
  }
  try {
    log_.append(Json{{"step", event.step}, {"tensors", tensors}}.dump() + "\n");
  } catch (const Error&) {
    works_ = false;
  }
}

}  // namespace echelon::cli
