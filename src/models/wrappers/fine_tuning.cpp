#include "models/wrappers/fine_tuning.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/glob.h"
#include "base/text.h"
#include "graph/gradient.h"
#include "graph/passes/quantise.h"

namespace echelon::models {
namespace {

// A model that is another one but for its training graphs.
class Retrained : public Model {
 public:
  explicit Retrained(std::unique_ptr<const Model> model)
      : Model(model->name(), model->inputs()), model_(std::move(model)) {}
  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::optional<Graph> decoding(std::int64_t samples) const override { return model_->decoding(samples); }
  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases = model_->training(samples);
    for (Phase& phase : phases) change(phase.graph);
    return phases;
  }
  Graph evaluation(std::int64_t samples) const override { return model_->evaluation(samples); }
  Graph prediction(std::int64_t samples) const override { return model_->prediction(samples); }
  std::unique_ptr<const Model> of_length(std::int64_t rows) const override {
    auto model = model_->of_length(rows);
    return model ? changed(std::move(model)) : nullptr;
  }

 private:
  virtual void change(Graph& graph) const = 0;
  virtual std::unique_ptr<const Model> changed(std::unique_ptr<const Model> model) const = 0;  // in the same way

  std::unique_ptr<const Model> model_;
};

class Frozen : public Retrained {
 public:
  Frozen(std::unique_ptr<const Model> model, std::vector<std::string> patterns)
      : Retrained(std::move(model)), patterns_(std::move(patterns)) {}

 private:
  void change(Graph& graph) const override {
    std::set<std::string> resting;
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      if (!graph.contributions()[i] || fits_any(patterns_, graph.parameters()[i].name))
        resting.insert(graph.parameters()[i].name);
    graph = without_backward(graph);
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      if (resting.contains(graph.parameters()[i].name)) graph.set_contribution(graph.parameter_value(i), {});
    differentiate(graph, graph.outputs().at("loss"), [&](const Parameter& p) { return !resting.contains(p.name); });
  }
  std::unique_ptr<const Model> changed(std::unique_ptr<const Model> model) const override {
    return std::make_unique<Frozen>(std::move(model), patterns_);
  }

  std::vector<std::string> patterns_;
};

class WithRates : public Retrained {
 public:
  WithRates(std::unique_ptr<const Model> model, Rates rates) : Retrained(std::move(model)), rates_(std::move(rates)) {
    std::ranges::stable_sort(rates_, {}, [](const auto& rate) { return rate.first.size(); });  // the longest comes last
  }

 private:
  void change(Graph& graph) const override {
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      for (const auto& [pattern, factor] : rates_)
        if (fits_layer(pattern, graph.parameters()[i].name)) graph.set_lr_scale(i, factor);
  }
  std::unique_ptr<const Model> changed(std::unique_ptr<const Model> model) const override {
    return std::make_unique<WithRates>(std::move(model), rates_);
  }

  Rates rates_;
};

bool trains_anything(const Model& model) {
  for (const Phase& phase : model.training(1))
    for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
      if (phase.graph.contributions()[i] && phase.graph.parameters()[i].kind == Parameter::Kind::weight) return true;
  return false;
}

}  // namespace

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  for (const Phase& phase : model.training(1))
    for (const Parameter& p : phase.graph.parameters())
      if (std::ranges::find(names, p.name) == names.end()) names.push_back(p.name);
  return names;
}

void check_patterns(const std::vector<std::string>& patterns, const Model& model, const std::string& key,
                    OptionReader& options) {
  const std::vector<std::string> names = parameter_names(model);
  for (const std::string& pattern : fitting_none(patterns, names)) {
    std::vector<std::string> layers = names;
    for (const std::string& name : names)
      for (const std::string_view part : split(name, '.')) layers.emplace_back(part);
    const auto plain = pattern.substr(0, pattern.find_first_of("*?"));
    constexpr std::size_t shown = 8;
    std::string there = fmt::format("{}", fmt::join(std::span(names).first(std::min(shown, names.size())), ", "));
    options.problem(key, fmt::format("has the pattern \"{}\", which fits no weight{}; there are {}{}", pattern,
                                     did_you_mean(plain, layers), there,
                                     names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : ""));
  }
}

std::vector<std::string> frozen_in_words(const std::vector<std::string>& patterns, const Model& model) {
  std::map<std::string, std::int64_t> weights;  // of each tensor
  for (const Phase& phase : model.training(1))
    for (const Parameter& p : phase.graph.parameters())
      if (p.kind == Parameter::Kind::weight) weights[p.name] = p.shape.elements();
  struct Count {
    std::size_t tensors = 0;
    double numbers = 0;
    std::string first = {};
  };
  const auto count = [&](auto counts) {
    Count c;
    for (const auto& [name, size] : weights)
      if (counts(name)) {
        if (c.tensors++ == 0) c.first = name;
        c.numbers += static_cast<double>(size);
      }
    return c;
  };
  const Count all = count([](const auto&) { return true; });
  const Count frozen = count([&](const std::string& name) { return fits_any(patterns, name); });
  std::vector<std::string> said{fmt::format("frozen: {} of {} tensors, {} of {} parameters ({:.1f} %)", frozen.tensors,
                                            all.tensors, human_count(frozen.numbers), human_count(all.numbers),
                                            100 * frozen.numbers / all.numbers)};
  constexpr double little = 0.01;
  for (const std::string& pattern : patterns) {
    const Count c = count([&](const std::string& name) { return fits_layer(pattern, name); });
    if (c.numbers >= little * all.numbers) continue;
    said.push_back(fmt::format(
        "model.freeze: \"{}\" fits little: {}{}, {:.2f} % of the parameters (`echelon models "
        "show {}` names the layers)",
        pattern, c.tensors == 0 ? "no weight, only statistics" : c.first,
        c.tensors > 1 ? fmt::format(" and {} more", c.tensors - 1) : "", 100 * c.numbers / all.numbers, model.name()));
  }
  return said;
}

std::unique_ptr<Model> read_frozen(std::unique_ptr<Model> model, OptionReader& options) {
  std::vector<std::string> patterns = options.texts("freeze", {});
  if (patterns.empty() || !model) return model;
  const std::size_t before = options.problems().list().size();
  check_patterns(patterns, *model, "freeze", options);
  auto frozen = std::make_unique<Frozen>(std::move(model), patterns);
  if (options.problems().list().size() == before && !trains_anything(*frozen))
    options.problem("freeze", "leaves no weight to train: take out a pattern");
  return frozen;
}

std::unique_ptr<Model> with_rates(std::unique_ptr<Model> model, Rates rates) {
  return std::make_unique<WithRates>(std::move(model), std::move(rates));
}

}  // namespace echelon::models
