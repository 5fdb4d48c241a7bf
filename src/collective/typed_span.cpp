#include "collective/typed_span.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

namespace {

constexpr std::array<std::string_view, 5> element_type_names{"bytes", "float32", "float64", "int32", "int64"};
constexpr std::array<std::string_view, 4> reduction_names{"sum", "min", "max", "mean"};

template <std::size_t n>
std::size_t index_of_name(const std::array<std::string_view, n>& names, std::string_view name, std::string_view what) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return i;
  const std::vector<std::string> all(names.begin(), names.end());
  bad_input("there is no {} '{}'{} (known: {})", what, name, did_you_mean(name, all), fmt::join(all, ", "));
}

}  // namespace

std::string_view to_string(ElementType type) { return element_type_names[static_cast<std::size_t>(type)]; }
std::string_view to_string(Reduction reduction) { return reduction_names[static_cast<std::size_t>(reduction)]; }
ElementType element_type(std::string_view name) {
  return static_cast<ElementType>(index_of_name(element_type_names, name, "element type"));
}
Reduction reduction_of(std::string_view name) {
  return static_cast<Reduction>(index_of_name(reduction_names, name, "reduction"));
}

}  // namespace echelon
