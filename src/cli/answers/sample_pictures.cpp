#include "cli/answers/sample_pictures.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "cli/data/picture_sheet.h"
#include "cli/runs/run_table.h"

namespace echelon::cli {

namespace {

constexpr std::int64_t across = 12, rows_of_new = 6;

Shape picture_shape(const models::Model& model) {
  const Shape& s = model.inputs().input().type.shape;
  if (s.rank() == 3 && (s[0] == 1 || s[0] == 3)) return s;
  bad_input("only pictures with one or three channels can be drawn, not {}", to_string(s));
}

// Runs the prediction graph on `in` (empty for a generator) and returns its output.
std::vector<float> forward(LoadedRun& run, std::int64_t samples, std::span<const float> in, std::uint64_t seed) {
  const models::Model& model = *run.prepared.model;
  const Plan plan = compile(model.prediction(samples));
  Buffer arena(plan.memory.arena_bytes);
  Executor executor(plan, run.table, run.parameters.as<float>(), {}, std::span(arena.data(), arena.bytes()));
  if (!in.empty()) std::memcpy(executor.input(model.inputs().input().name).data(), in.data(), in.size_bytes());
  executor.run({.seed = seed});
  const auto out = executor.output("output");
  const auto* f = reinterpret_cast<const float*>(out.data());
  return {f, f + out.size() / sizeof(float)};
}

}  // namespace

std::vector<std::byte> sample_pictures(Disk& disk, LoadedRun& run, std::uint64_t seed) {
  const models::Model& model = *run.prepared.model;
  const Shape shape = picture_shape(model);
  const auto size = static_cast<std::size_t>(shape.elements());
  auto at = [&](const std::vector<float>& all, std::int64_t i) {
    return std::span(all).subspan(static_cast<std::size_t>(i) * size, size);
  };
  if (model.task() == models::Task::generate) {
    const auto made = forward(run, across * rows_of_new, {}, seed);
    const auto [low, high] = std::ranges::minmax(made);
    Sheet sheet(shape, across, rows_of_new);
    for (std::int64_t i = 0; i < across * rows_of_new; ++i) sheet.put(at(made, i), i % across, i / across, low, high);
    return sheet.png();
  }
  std::vector<float> clean(static_cast<std::size_t>(across) * size);
  const auto test = data::open_dataset(disk, run.prepared.recipe.data, "test");
  data::Sample sample(test->fields());
  for (std::int64_t i = 0; i < across; ++i) {
    test->get(static_cast<std::uint64_t>(i) * (test->size() / static_cast<std::uint64_t>(across)), {}, sample.ref());
    std::ranges::copy(sample.field<float>(0), clean.begin() + i * static_cast<std::int64_t>(size));
  }
  const auto option = run.prepared.recipe.model.items.find("noise");
  double deviation = 0.3;
  if (option != run.prepared.recipe.model.items.end())
    if (const auto* number = std::get_if<double>(&option->second.value)) deviation = *number;
  std::vector<float> noisy = clean;
  const Stream noise({.seed = seed, .layer = stream_layer("noise of pictures")});
  for (std::size_t i = 0; i < noisy.size(); ++i) noisy[i] += static_cast<float>(deviation) * noise.normal(i);
  const auto restored = forward(run, across, noisy, seed);
  const auto [low, high] = std::ranges::minmax(clean);
  Sheet sheet(shape, across, 3);
  for (std::int64_t i = 0; i < across; ++i) {
    sheet.put(at(clean, i), i, 0, low, high);
    sheet.put(at(noisy, i), i, 1, low, high);
    sheet.put(at(restored, i), i, 2, low, high);
  }
  return sheet.png();
}

}  // namespace echelon::cli
