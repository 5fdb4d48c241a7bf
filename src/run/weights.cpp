#include "run/weights.h"

namespace echelon {

std::vector<TensorView> weight_views(const ParameterTable& table, std::span<const float> parameters) {
  std::vector<TensorView> views;
  for (const auto& e : table.entries())
    views.push_back(
        {e.parameter.name, DType::f32, e.parameter.shape, std::as_bytes(parameters.subspan(e.offset, e.size))});
  return views;
}

std::vector<TensorView> state_views(const std::vector<StateSpan>& state) {
  std::vector<TensorView> views;
  for (const auto& s : state)
    views.push_back({s.name, DType::u8, Shape{static_cast<std::int64_t>(s.bytes.size())}, s.bytes});
  return views;
}

void load_weights(SafetensorsFile& file, const ParameterTable& table, std::span<float> parameters) {
  std::vector<TensorSlot> slots;
  for (const auto& e : table.entries())
    slots.push_back({e.parameter.name, DType::f32, e.parameter.shape,
                     std::as_writable_bytes(parameters.subspan(e.offset, e.size))});
  file.read_all(slots);
}

void load_state(SafetensorsFile& file, const std::vector<StateSpan>& state) {
  std::vector<TensorSlot> slots;
  for (const auto& s : state)
    slots.push_back({s.name, DType::u8, Shape{static_cast<std::int64_t>(s.bytes.size())}, s.bytes});
  file.read_all(slots);
}

}  // namespace echelon
