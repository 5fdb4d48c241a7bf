#include "run/weights.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "optim/rules.h"

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
  std::string problems;
  for (const auto& e : table.entries()) {
    const auto values = parameters.subspan(e.offset, e.size);
    const auto bad = std::ranges::count_if(values, [](float x) { return !std::isfinite(x); });
    if (bad > 0)
      problems += fmt::format("{} {} ({} of {})", problems.empty() ? "" : ",", e.parameter.name, bad, e.size);
  }
  if (!problems.empty()) bad_input("{}: weights that are not finite numbers in{}", file.path(), problems);
}

void load_average(SafetensorsFile& state, const ParameterTable& table, const models::Model& model,
                  std::span<float> parameters) {
  // One for each phase of a step, zero at the weights that the phase does not train.
  std::vector<float> average(table.floats()), part(table.floats());
  bool found = false;
  for (const StoredTensor& t : state.tensors()) {
    if (t.name != rules::ema_slot && !t.name.ends_with(fmt::format(".{}", rules::ema_slot))) continue;
    if (t.bytes != part.size() * sizeof(float))
      bad_input("{}: the average of the weights has {} bytes, but the model needs {}", state.path(), t.bytes,
                part.size() * sizeof(float));
    state.read(t, std::as_writable_bytes(std::span(part)));
    for (std::size_t i = 0; i < average.size(); ++i) average[i] += part[i];
    found = true;
  }
  if (!found) bad_input("{} holds no average of the weights: train with optim.ema = 0.999, for example", state.path());
  std::set<std::string> trained;
  for (const models::Phase& phase : model.training(1))
    for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
      if (phase.graph.contributions()[i] && phase.graph.parameters()[i].kind == Parameter::Kind::weight)
        trained.insert(phase.graph.parameters()[i].name);
  for (const auto& e : table.entries())
    if (trained.contains(e.parameter.name))
      std::ranges::copy(std::span(average).subspan(e.offset, e.size), parameters.subspan(e.offset).begin());
}

void load_state(SafetensorsFile& file, const std::vector<StateSpan>& state) {
  std::vector<TensorSlot> slots;
  for (const auto& s : state)
    slots.push_back({s.name, DType::u8, Shape{static_cast<std::int64_t>(s.bytes.size())}, s.bytes});
  file.read_all(slots);
}

}  // namespace echelon
