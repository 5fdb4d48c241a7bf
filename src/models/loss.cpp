#include "models/loss.h"

#include <algorithm>
#include <cmath>

namespace echelon::models {

namespace {

std::vector<float> floats(const std::vector<double>& numbers) { return {numbers.begin(), numbers.end()}; }

// Keys of one loss under the name of another.
void only_for(OptionReader& table, const LossSpec& loss, const std::string& key, const std::string& name) {
  if (!table.has(key) || loss.name == name || (loss.name.empty() && name == "cross_entropy")) return;
  table.problem(key, loss.name.empty() ? fmt::format("needs name = \"{}\"", name)
                                       : fmt::format("belongs to name = \"{}\", not to \"{}\"", name, loss.name));
}

}  // namespace

std::vector<std::string> loss_names() { return {"cross_entropy", "binary", "mse", "mae", "huber", "quantile"}; }

std::size_t middle_quantile(const std::vector<float>& quantiles) {
  std::size_t middle = 0;
  for (std::size_t q = 1; q < quantiles.size(); ++q)
    if (std::abs(quantiles[q] - 0.5f) < std::abs(quantiles[middle] - 0.5f)) middle = q;
  return middle;
}

LossSpec read_loss(OptionReader& table) {
  LossSpec loss;
  if (table.has("name")) loss.name = table.choice("name", "", loss_names());
  loss.label_smoothing = static_cast<float>(table.number("label_smoothing", 0, 0, 0.999));
  loss.focal_gamma = static_cast<float>(table.number("focal_gamma", 0, 0, 100));
  loss.delta = static_cast<float>(table.number("delta", 1, 1e-6, 1e6));
  loss.quantiles = floats(table.numbers("quantiles", {}, 0, 1));
  const auto weights = table.options().items.find("class_weights");
  if (weights != table.options().items.end() && std::holds_alternative<std::string>(weights->second.value))
    loss.balanced = table.choice("class_weights", "balanced", {"balanced"}) == "balanced";
  else
    loss.class_weights = floats(table.numbers("class_weights", {}, 0, 1e6));
  for (const char* key : {"label_smoothing", "focal_gamma", "class_weights"})
    only_for(table, loss, key, "cross_entropy");
  only_for(table, loss, "delta", "huber");
  only_for(table, loss, "quantiles", "quantile");
  if (loss.label_smoothing > 0 && loss.focal_gamma > 0)
    table.problem("focal_gamma", "and loss.label_smoothing exclude each other; keep one of them");
  if (!loss.class_weights.empty() && std::ranges::all_of(loss.class_weights, [](float w) { return w == 0; }))
    table.problem("class_weights", "are all 0: nothing would be learned");
  if (loss.name == "quantile" && loss.quantiles.empty())
    table.problem("quantiles", "is missing: say which, such as [0.1, 0.5, 0.9]");
  for (std::size_t i = 0; i < loss.quantiles.size(); ++i)
    if (loss.quantiles[i] <= 0 || loss.quantiles[i] >= 1 || (i > 0 && loss.quantiles[i] <= loss.quantiles[i - 1])) {
      table.problem("quantiles", "must lie between 0 and 1 and rise, such as [0.1, 0.5, 0.9]");
      break;
    }
  table.done();
  return loss;
}

std::vector<float> balanced_weights(const std::vector<std::int64_t>& samples_by_class) {
  double all = 0, classes = 0;
  for (const std::int64_t n : samples_by_class) all += static_cast<double>(n), classes += n > 0;
  std::vector<float> weights;
  for (const std::int64_t n : samples_by_class)
    weights.push_back(n > 0 ? static_cast<float>(all / (classes * static_cast<double>(n))) : 0.0f);
  return weights;
}

}  // namespace echelon::models
