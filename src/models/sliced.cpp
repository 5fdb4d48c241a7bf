#include "models/sliced.h"

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

bool divides(const std::vector<Graph>& graphs, int slices) {
  for (const Graph& graph : graphs)
    if (!slice(graph, slices).indivisible.empty()) return false;
  return true;
}

// The number that works and is nearest to `slices`, the smaller one of two. One always works.
int nearest(const std::vector<Graph>& graphs, int slices) {
  for (int away = 1;; ++away) {
    if (slices - away >= 1 && divides(graphs, slices - away)) return slices - away;
    if (slices + away <= most_slices && divides(graphs, slices + away)) return slices + away;
  }
}

class SlicedModel : public Model {
 public:
  SlicedModel(std::unique_ptr<Model> model, int slices)
      : Model(model->name(), model->inputs()), model_(std::move(model)), slices_(slices) {
    // All graphs share the parameters: who meets one first decides how it is cut.
    std::vector<Graph> graphs = forward_graphs(*model_);
    check_division(graphs);
    graphs.push_back(model_->evaluation(2));
    graphs.push_back(model_->prediction(2));
    for (const Graph& graph : graphs) cuts_.merge(slice(graph, slices_, cuts_).cuts);
  }

  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases = model_->training(samples);
    for (Phase& phase : phases) {
      std::set<std::string> resting;
      for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
        if (!phase.graph.contributions()[i]) resting.insert(phase.graph.parameters()[i].name);
      Sliced parts = slice(without_backward(phase.graph), slices_, cuts_);
      for (const SlicedParameter& p : parts.parameters)
        if (resting.contains(p.whole)) resting.insert(p.name);
      phase.graph = std::move(parts.graph);
      differentiate(phase.graph, phase.graph.outputs().at("loss"),
                    [&](const Parameter& p) { return !resting.contains(p.name); });
    }
    return phases;
  }
  Graph evaluation(std::int64_t samples) const override {
    return slice(model_->evaluation(samples), slices_, cuts_).graph;
  }
  Graph prediction(std::int64_t samples) const override {
    return slice(model_->prediction(samples), slices_, cuts_).graph;
  }

 private:
  void check_division(const std::vector<Graph>& graphs) const {
    std::vector<std::string> layers;
    for (const Graph& graph : graphs)
      for (const Sliced parts = slice(graph, slices_); const Indivisible& i : parts.indivisible) {
        const std::string text = fmt::format("'{}' has {} {}", i.layer, i.units, i.unit);
        if (std::ranges::find(layers, text) == layers.end()) layers.push_back(text);
      }
    if (layers.empty()) return;
    bad_input("= {} does not divide {} layer{}: {}; the nearest number that works is {}", slices_, layers.size(),
              layers.size() == 1 ? "" : "s", fmt::join(layers, ", "), nearest(graphs, slices_));
  }

  std::unique_ptr<Model> model_;
  int slices_;
  Cuts cuts_;
};

}  // namespace

std::unique_ptr<Model> sliced(std::unique_ptr<Model> model, int slices) {
  return std::make_unique<SlicedModel>(std::move(model), slices);
}

}  // namespace echelon::models
