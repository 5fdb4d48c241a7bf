#include "models/wrappers/left_padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/probe.h"

namespace echelon::models {

namespace {

// What the network makes of an input whose last numbers are those of one row.
std::vector<float> answer(const Graph& graph, const std::string& input, std::int64_t row) {
  const std::string output = graph.outputs().contains("logits") ? "logits" : "output";
  return probe(graph, input, output, [&](std::span<std::byte> bytes) {
    const std::span<float> values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    std::ranges::fill(values, 0.0f);
    for (std::int64_t i = 0; i < row; ++i)
      values[values.size() - static_cast<std::size_t>(row - i)] = static_cast<float>(i * 7 % 5) / 2 - 1;
  });
}

bool same_parameters(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.parameters(), b.parameters(), [](const Parameter& x, const Parameter& y) {
    return x.name == y.name && x.shape == y.shape;
  });
}

}  // namespace

std::string left_padding_refusal(const Model& model) {
  const InputSpec::Field& input = model.inputs().input();
  const Graph whole = model.prediction(1);
  try {
    const Graph cut = model.of_length(1)->prediction(1);
    if (!same_parameters(whole, cut))
      return "the network has weights for every row of a sequence, so it has one length";
    const std::vector<float> padded = answer(whole, input.name, input.type.shape[1]),
                             alone = answer(cut, input.name, input.type.shape[1]);
    const bool same = std::ranges::equal(padded, alone,
                                         [](float a, float b) { return std::abs(a - b) <= 1e-4f * (1 + std::abs(b)); });
    if (same) return "";
  } catch (const BadInput& problem) {
    return fmt::format("the network cannot be made for a sequence of one row: {}", problem.what());
  }
  return "rows of zeros in front of a sequence change the network's answer, so they cannot be left out: recurrent "
         "layers need bias = false, and layers before them must make zeros of zeros";
}

}  // namespace echelon::models
