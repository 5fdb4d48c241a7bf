#include "cli/answers/metric_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace echelon::cli {

std::string metric_text(const std::string& name, double value) {
  if (name.find("accuracy") != std::string::npos || name.starts_with("top_"))
    return fmt::format("{} {:.2f} %", name, 100 * value);
  return fmt::format("{} {}", name, number_text(value));
}

std::string number_text(double value) {
  constexpr double small = 0.01, large = 1000;      // beyond them four places say too little, or too much
  constexpr double million = 1e6, too_long = 1e15;  // prices and populations are written out
  const double size = std::abs(value);
  if (size > 0 && size < small) return fmt::format("{:.3g}", value);
  if (size >= million && size < too_long) return fmt::format("{:.0f}", value);
  return size < large ? fmt::format("{:.4f}", value) : fmt::format("{:.6g}", value);
}

MetricValues named_values(const Evaluation& e, const std::string& prefix) {
  MetricValues values{{prefix + "loss", e.loss}};
  if (e.accuracy >= 0) values.emplace_back(prefix + "accuracy", e.accuracy);
  for (const auto& [name, value] : e.metrics)
    if (name != "accuracy") values.emplace_back(prefix + name, value);
  return values;
}

std::string in_words(const Evaluation& e) {
  std::string text;
  for (const auto& [name, value] : named_values(e, "")) text += (text.empty() ? "" : "  ") + metric_text(name, value);
  return text;
}

}  // namespace echelon::cli
