#include "world/label.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace echelon {

std::string_view to_string(OperationKind kind) {
  static constexpr std::array<std::string_view, 10> kinds{"message",    "barrier",        "broadcast",  "reduce",
                                                          "all-reduce", "reduce-scatter", "all-gather", "gather",
                                                          "scatter",    "all-to-all"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kinds.size() ? kinds[number] : "unknown";
}

std::string to_string(const Label& label) {
  static constexpr std::array<std::string_view, 5> types{"bytes", "float32", "float64", "int32", "int64"};
  static constexpr std::array<std::string_view, 4> reductions{"", " (min)", " (max)", " (mean)"};
  const std::size_t type = std::size_t{label.type} & 15, reduction = std::size_t{label.type} >> 4;
  return fmt::format("{} {}, step {}, of {}{}", to_string(label.kind), label.number, label.step,
                     type < types.size() ? types[type] : "unknown numbers",
                     reduction < reductions.size() ? reductions[reduction] : " (unknown)");
}

}  // namespace echelon
