#include "data/dataset.h"

#include <fmt/format.h>

namespace echelon::data {

std::string to_string(const Field& field) {
  return fmt::format("{} {} {}", field.name, name_of(field.dtype), echelon::to_string(field.shape));
}

Sample::Sample(std::span<const Field> fields) {
  for (const auto& f : fields) {
    memory_.emplace_back(f.bytes());
    pointers_.push_back(memory_.back().data());
  }
}

int find_field(std::span<const Field> fields, std::string_view name) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace echelon::data
