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

std::int32_t Dataset::label(std::uint64_t index) const {
  Sample sample(fields());
  get(index, {}, sample.ref());
  return sample.field<std::int32_t>(fields().size() - 1)[0];
}

bool has_labels(const DatasetInfo& info) {
  return info.classes > 0 && info.fields.size() > 1 && info.fields.back().dtype == DType::i32 &&
         info.fields.back().shape.elements() == 1;
}

int find_field(std::span<const Field> fields, std::string_view name) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace echelon::data
