#include "models/wrappers/sliced.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/gradient.h"
#include "graph/passes/quantise.h"

namespace echelon::models {
namespace {

// Every graph of a model that trains, forward.
std::vector<Graph> forward_graphs(const Model& model) {
  std::vector<Graph> graphs;
  for (const Phase& phase : model.training(2)) graphs.push_back(without_backward(phase.graph));
  return graphs;
}

bool divides(const std::vector<Graph>& graphs, Slicing how) {
  for (const Graph& graph : graphs)
    if (!slice(graph, how).indivisible.empty()) return false;
  return true;
}

// The number that works and is nearest to `slices`, the smaller one of two. One always works.
int nearest(const std::vector<Graph>& graphs, Slicing how) {
  const int wanted = how.slices;
  for (int away = 1;; ++away)
    for (int slices : {wanted - away, wanted + away}) {
      how.slices = slices;
      if (slices >= 1 && slices <= most_slices && divides(graphs, how)) return slices;
    }
}

class SlicedModel : public Model {
 public:
  SlicedModel(std::unique_ptr<Model> model, Slicing how)
      : Model(model->name(), model->inputs()), model_(std::move(model)), how_(how) {
    // All graphs share the parameters: who meets one first decides how it is cut.
    std::vector<Graph> graphs = forward_graphs(*model_);
    check_division(graphs);
    graphs.push_back(model_->evaluation(2));
    graphs.push_back(model_->prediction(2));
    std::set<std::string> met;
    for (const Graph& graph : graphs) {
      Sliced parts = slice(graph, how_, cuts_);
      cuts_.merge(parts.cuts);
      for (SlicedParameter& p : parts.parameters)
        if (met.insert(p.name).second) parameters_.push_back(std::move(p));
    }
  }

  const std::vector<SlicedParameter>& parameters() const { return parameters_; }

  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases = model_->training(samples);
    for (Phase& phase : phases) {
      std::set<std::string> resting;
      for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
        if (!phase.graph.contributions()[i]) resting.insert(phase.graph.parameters()[i].name);
      Sliced parts = slice(without_backward(phase.graph), how_, cuts_);
      for (const SlicedParameter& p : parts.parameters)
        if (resting.contains(p.whole)) resting.insert(p.name);
      phase.graph = std::move(parts.graph);
      differentiate(phase.graph, phase.graph.outputs().at("loss"),
                    [&](const Parameter& p) { return !resting.contains(p.name); });
    }
    return phases;
  }
  Graph evaluation(std::int64_t samples) const override {
    return slice(model_->evaluation(samples), how_, cuts_).graph;
  }
  Graph prediction(std::int64_t samples) const override {
    return slice(model_->prediction(samples), how_, cuts_).graph;
  }

 private:
  void check_division(const std::vector<Graph>& graphs) const {
    std::vector<std::string> layers;
    for (const Graph& graph : graphs)
      for (const Sliced parts = slice(graph, how_); const Indivisible& i : parts.indivisible) {
        const std::string text = fmt::format("'{}' has {} {}", i.layer, i.units, i.unit);
        if (std::ranges::find(layers, text) == layers.end()) layers.push_back(text);
      }
    if (layers.empty()) return;
    bad_input("= {} does not divide {} layer{}: {}; the nearest number that works is {}", how_.slices, layers.size(),
              layers.size() == 1 ? "" : "s", fmt::join(layers, ", "), nearest(graphs, how_));
  }

  std::unique_ptr<Model> model_;
  Slicing how_;
  Cuts cuts_;
  std::vector<SlicedParameter> parameters_;
};

}  // namespace

std::unique_ptr<Model> sliced(std::unique_ptr<Model> model, Slicing how) {
  return std::make_unique<SlicedModel>(std::move(model), how);
}

std::vector<SlicedParameter> sliced_parameters(const Model& model) {
  const auto* in_slices = dynamic_cast<const SlicedModel*>(&model);
  return in_slices ? in_slices->parameters() : std::vector<SlicedParameter>{};
}

}  // namespace echelon::models
