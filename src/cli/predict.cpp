// `echelon predict`: a picture or a row of numbers in, class and confidence out.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "cli/loaded_run.h"
#include "cli/verbs.h"
#include "data/image.h"

namespace echelon::cli {

namespace {

struct PredictSettings {
  std::string run, checkpoint = "best";
  std::vector<std::string> inputs;
  int top = 3;
  bool json = false;
};

// A data set of one sample whose first field is known; the others are zeros.
class OneSample : public data::Dataset {
 public:
  OneSample(data::DatasetInfo like, std::vector<float> values)
      : Dataset(single(std::move(like))), values_(std::move(values)) {}
  void get(std::uint64_t, const data::SampleContext&, data::SampleRef out) const override {
    for (std::size_t f = 0; f < fields().size(); ++f) std::memset(out[f], 0, fields()[f].bytes());
    std::memcpy(out[0], values_.data(), values_.size() * sizeof(float));
  }

 private:
  static data::DatasetInfo single(data::DatasetInfo info) {
    info.size = 1;
    return info;
  }
  std::vector<float> values_;
};

std::vector<float> read_picture(Disk& disk, const std::string& path, const Shape& shape) {
  if (shape.rank() != 3 || (shape[0] != 1 && shape[0] != 3))
    bad_input("{}: this network reads {}, not pictures; give numbers with commas between them", path, to_string(shape));
  const auto file = read_file(disk, path, 64u << 20);
  data::Scratch pixels;
  const int channels = static_cast<int>(shape[0]);
  const data::ImageExtent extent = data::decode_image(file, path, channels, pixels);
  std::vector<float> out(static_cast<std::size_t>(shape.elements()));
  data::resize_image(pixels.bytes(), extent, channels, {shape[1], shape[2]}, data::Fit::stretch, out.data());
  return out;
}

std::vector<float> read_row(const std::string& text, const Shape& shape) {
  std::vector<float> out;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    while (at != end && *at == ' ') ++at;
    float x = 0;
    const auto [next, error] = std::from_chars(at, end, x);
    if (error != std::errc() || (next != end && *next != ','))
      bad_input("'{}' is neither a file nor a row of numbers with commas between them", text);
    out.push_back(x);
    at = next == end ? end : next + 1;
  }
  if (static_cast<std::int64_t>(out.size()) != shape.elements())
    bad_input("'{}' has {} numbers, but this network reads {} ({})", text, out.size(), shape.elements(),
              to_string(shape));
  return out;
}

struct Answer {
  std::int64_t label;
  double confidence;
};

std::vector<Answer> answers(std::span<const float> scores) {
  std::vector<Answer> all;
  const float top = std::ranges::max(scores);
  double sum = 0;
  for (float s : scores) sum += std::exp(s - top);
  for (std::size_t i = 0; i < scores.size(); ++i)
    all.push_back({static_cast<std::int64_t>(i), std::exp(scores[i] - top) / sum});
  std::ranges::stable_sort(all, std::greater{}, &Answer::confidence);
  return all;
}

void predict(const PredictSettings& s) {
  const auto disk = make_real_disk();
  LoadedRun run = load_run(*disk, s.run, s.checkpoint);
  const models::Model& model = *run.prepared.model;
  if (model.task() != models::Task::classify)
    bad_input("{} does not classify: its model is {}{}", run.folder.path, model.name(),
              model.task() == models::Task::language ? "; try `echelon sample`" : "");
  Problems problems;
  OptionReader table(run.prepared.recipe.data, problems);
  const data::DataSpec spec = data::read_data_spec(table);
  problems.throw_if_any(run.folder.recipe());
  const data::DatasetInfo plain = spec.open_plain(*disk, "test")->info();

  const Plan plan = compile(model.prediction(1));
  Buffer arena(plan.memory.arena_bytes);
  Executor executor(plan, run.table, run.parameters.as<float>(), {}, std::span(arena.data(), arena.bytes()));
  const auto& names = run.prepared.train->info().class_names;
  auto name_of = [&](std::int64_t label) {
    return names.empty() ? std::to_string(label) : names[static_cast<std::size_t>(label)];
  };
  auto all = nlohmann::ordered_json::array();
  for (const std::string& input : s.inputs) {
    const Shape& shape = plain.fields[0].shape;
    auto values = disk->exists(input) ? read_picture(*disk, input, shape) : read_row(input, shape);
    const auto dataset = spec.transformed(std::make_shared<OneSample>(plain, std::move(values)), false);
    data::Sample sample(dataset->fields());
    dataset->get(0, {}, sample.ref());
    const auto bytes = sample.field<std::byte>(0);
    std::memcpy(executor.input(model.inputs().input().name).data(), bytes.data(), bytes.size());
    executor.run({});
    const auto logits = executor.output("logits");
    const auto best = answers({reinterpret_cast<const float*>(logits.data()), logits.size() / sizeof(float)});
    const std::size_t shown = std::min<std::size_t>(best.size(), static_cast<std::size_t>(s.top));
    nlohmann::ordered_json j{{"input", input},
                             {"class", name_of(best[0].label)},
                             {"label", best[0].label},
                             {"confidence", best[0].confidence}};
    std::string line = fmt::format("{}: {} ({:.1f} %)", input, name_of(best[0].label), 100 * best[0].confidence);
    for (std::size_t i = 1; i < shown; ++i) {
      j["others"].push_back({{"class", name_of(best[i].label)}, {"confidence", best[i].confidence}});
      line += fmt::format("{} {} {:.1f} %", i == 1 ? "   else" : ",", name_of(best[i].label), 100 * best[i].confidence);
    }
    all.push_back(j);
    if (!s.json) fmt::print("{}\n", line);
  }
  if (s.json) fmt::print("{}\n", all.size() == 1 ? all[0].dump() : all.dump());
}

}  // namespace

void add_predict(Verb program) {
  const Verb verb = program.add_subcommand("predict", "Class and confidence for a picture or a row of numbers");
  auto s = std::make_shared<PredictSettings>();
  verb.add_option("run", s->run, "A run's folder, or its name in runs/").required();
  verb.add_option("inputs", s->inputs, "Pictures (PNG, JPEG), or rows such as 5.1,3.5,1.4,0.2").required();
  verb.add_option("--top", s->top, "How many classes to name").show_default().range(1, 100);
  verb.add_option("--checkpoint", s->checkpoint, "best, last or a step").show_default();
  verb.add_flag("--json", s->json, "Print JSON");
  verb.footer(
      "Examples:\n  echelon predict runs/demo-1 seven.png\n  echelon predict runs/flowers-1 5.1,3.5,1.4,0.2 --json");
  verb.action([s] { predict(*s); });
}

}  // namespace echelon::cli
