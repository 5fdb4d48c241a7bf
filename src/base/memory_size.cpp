#include "base/memory_size.h"

#include <algorithm>
#include <stdexcept>

namespace echelon {

std::optional<std::size_t> memory_size(const std::string& text) {
  std::size_t at = 0;
  double number = -1;
  try {
    number = std::stod(text, &at);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(std::min(at, text.size()));
  const double scale = unit.empty() || unit == "B"    ? 1
                       : unit == "K" || unit == "KiB" ? 0x1p10
                       : unit == "M" || unit == "MiB" ? 0x1p20
                       : unit == "G" || unit == "GiB" ? 0x1p30
                                                      : 0;
  if (!(number > 0) || scale == 0 || number * scale > 0x1p50) return {};
  return static_cast<std::size_t>(number * scale);
}

}  // namespace echelon
