#include "models/fine_tuning.h"

#include <fmt/ranges.h>

#include <algorithm>
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
  explicit Retrained(std::unique_ptr<Model> model) : Model(model->name(), model->inputs()), model_(std::move(model)) {}
  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::optional<Graph> decoding(std::int64_t slice) const override { return model_->decoding(slice); }
  std::vector<Phase> training(std::int64_t slice) const override {
    std::vector<Phase> phases = model_->training(slice);
    for (Phase& phase : phases) change(phase.graph);
    return phases;
  }
  Graph evaluation(std::int64_t slice) const override { return model_->evaluation(slice); }
  Graph prediction(std::int64_t slice) const override { return model_->prediction(slice); }

 private:
  virtual void change(Graph& graph) const = 0;

  std::unique_ptr<Model> model_;
};

class Frozen : public Retrained {
 public:
  Frozen(std::unique_ptr<Model> model, std::vector<std::string> patterns)
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

  std::vector<std::string> patterns_;
};

class WithRates : public Retrained {
 public:
  WithRates(std::unique_ptr<Model> model, Rates rates) : Retrained(std::move(model)), rates_(std::move(rates)) {
    std::ranges::stable_sort(rates_, {}, [](const auto& rate) { return rate.first.size(); });  // the longest comes last
  }

 private:
  void change(Graph& graph) const override {
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      for (const auto& [pattern, factor] : rates_)
        if (fits(pattern, graph.parameters()[i].name)) graph.set_lr_scale(i, factor);
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
    for (const std::string& name : names) layers.push_back(name.substr(0, name.find('.')));
    const auto plain = pattern.substr(0, pattern.find_first_of("*?"));
    constexpr std::size_t shown = 8;
    std::string there = fmt::format("{}", fmt::join(std::span(names).first(std::min(shown, names.size())), ", "));
    options.problem(key, fmt::format("has the pattern \"{}\", which fits no weight{}; there are {}{}", pattern,
                                     did_you_mean(plain, layers), there,
                                     names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : ""));
  }
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
