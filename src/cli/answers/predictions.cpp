#include "cli/answers/predictions.h"

#include <algorithm>
#include <cmath>

#include "cli/answers/loaded_run.h"
#include "run/training/interrupted.h"

namespace echelon::cli {

namespace {

// A picture in 0..255 from whatever range the network sees.
std::vector<std::uint8_t> grey(std::span<const float> pixels) {
  const auto [low, high] = std::ranges::minmax(pixels);
  const float range = high > low ? high - low : 1;
  std::vector<std::uint8_t> out;
  for (float p : pixels) out.push_back(static_cast<std::uint8_t>(255 * (p - low) / range));
  return out;
}

double softmax_at(std::span<const float> logits, std::int64_t at) {
  const float top = std::ranges::max(logits);
  double sum = 0;
  for (float l : logits) sum += std::exp(l - top);
  return std::exp(logits[static_cast<std::size_t>(at)] - top) / sum;
}

constexpr std::size_t kept_mistakes = 24;

Predictions predict_all(const PreparedRun& p, Training& training, Cores& cores) {
  const auto classes = static_cast<std::size_t>(p.test->info().classes);
  const Shape& image = p.test->fields()[0].shape;
  const bool drawable = image.rank() == 3 && image[0] == 1 && image[1] <= 64 && image[2] <= 64;
  const auto pixels = static_cast<std::size_t>(image.elements());
  Predictions result{std::vector<std::int64_t>(classes * classes), {}};
  const auto alone = make_world_alone();
  Team team(*alone, cores);
  Evaluator evaluator(*p.model, training.engine().table(), training.tested_weights(), p.test, evaluation_batch, team);
  evaluator.run([&](const data::Batch& batch, int shard, Executor& executor) {
    const auto s = static_cast<std::uint64_t>(shard);
    const auto logits = executor.output("logits");
    const auto* scores = reinterpret_cast<const float*>(logits.data());
    const auto labels = batch.field_as<std::int32_t>(s, p.test->info().inputs);
    for (std::size_t i = 0; i < batch.samples_of(s).count; ++i) {
      const std::span<const float> row(scores + i * classes, classes);
      const auto said = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
      ++result.confusion[static_cast<std::size_t>(labels[i]) * classes + static_cast<std::size_t>(said)];
      if (said == labels[i]) continue;
      const double confidence = softmax_at(row, said);
      if (result.mistakes.size() == kept_mistakes && confidence <= result.mistakes.back().confidence) continue;
      result.mistakes.push_back({labels[i], said, confidence, {}});
      if (drawable) result.mistakes.back().pixels = grey(batch.field_as<float>(s, 0).subspan(i * pixels, pixels));
      std::ranges::stable_sort(result.mistakes, std::greater{}, &Mistake::confidence);
      if (result.mistakes.size() > kept_mistakes) result.mistakes.pop_back();
    }
  });
  return result;
}

}  // namespace

std::optional<Predictions> predict_test(const PreparedRun& prepared, Training& training, const RunSummary& summary,
                                        Cores& cores) {
  constexpr std::int64_t most_classes = 100;
  if (!summary.test || was_interrupted(summary.stopped_by) || prepared.model->task() != models::Task::classify ||
      prepared.test->info().classes > most_classes)
    return std::nullopt;
  return predict_all(prepared, training, cores);
}

Json to_json(const Predictions& predictions, const PreparedRun& prepared) {
  const std::vector<std::string> names = class_names_of(prepared.test->info());
  const auto classes = static_cast<std::ptrdiff_t>(prepared.test->info().classes);
  Json rows = Json::array();
  for (auto row = predictions.confusion.begin(); row != predictions.confusion.end(); row += classes)
    rows.push_back(std::vector<std::int64_t>(row, row + classes));
  Json mistakes = Json::array();
  const Shape& image = prepared.test->fields()[0].shape;
  for (const Mistake& m : predictions.mistakes) {
    Json mistake{{"is", names[static_cast<std::size_t>(m.is)]},
                 {"said", names[static_cast<std::size_t>(m.said)]},
                 {"confidence", m.confidence}};
    if (!m.pixels.empty()) mistake["height"] = image[1], mistake["width"] = image[2], mistake["pixels"] = m.pixels;
    mistakes.push_back(std::move(mistake));
  }
  return {{"classes", names}, {"confusion", rows}, {"mistakes", mistakes}};
}

}  // namespace echelon::cli
