#include "models/wrappers/halp.h"

#include <map>
#include <set>

#include "base/error.h"
#include "graph/gradient.h"
#include "graph/ops/elementwise.h"
#include "graph/passes/quantise.h"

namespace echelon::models {
namespace {

constexpr const char* full_gradient = "full_gradient";

Value statistic(Graph& g, const Parameter& of, const std::string& what) {
  return g.parameter({.name = of.name + "." + what,
                      .shape = of.shape,
                      .init = Init::zeros(),
                      .kind = Parameter::Kind::statistic,
                      .decays = false,
                      .rate = 1});
}

// The forward graph twice over one set of inputs. Returns it with the loss of each.
struct Twice {
  Graph graph;
  Value at_weights, at_centre;
};

Twice run_twice(const Graph& forward, const std::set<std::string>& trained, const ops::BitCentring& how) {
  Rewriter r(forward);
  Graph& g = r.graph();
  std::map<int, Value> second;  // values of the second run, by those of the old graph
  for (std::size_t i = 0; i < forward.parameters().size(); ++i) {
    const Parameter& p = forward.parameters()[i];
    if (p.kind != Parameter::Kind::weight || !trained.contains(p.name)) continue;
    g.set_layer(p.name);
    const Value old = forward.parameter_value(i);
    const ops::Centred c{r[old], statistic(g, p, "centre"), statistic(g, p, full_gradient)};
    second[old.id] = ops::at_centre(g, c, how);
    r.map(old, ops::at_offset(g, c, how));
  }
  for (const Node& node : forward.nodes()) {
    r.copy(node);
    std::vector<Value> in;
    bool differs = false;
    for (Value v : node.in) {
      const auto it = second.find(v.id);
      differs = differs || it != second.end();
      in.push_back(it != second.end() ? it->second : r[v]);
    }
    if (!differs) continue;
    const auto out = g.add(node.op, in);
    for (std::size_t i = 0; i < out.size(); ++i) second[node.out[i].id] = out[i];
  }
  const Value loss = forward.outputs().at("loss");
  return {r.finish(), r[loss], second.at(loss.id)};
}

class BitCentred : public Model {
 public:
  BitCentred(std::unique_ptr<Model> model, const ops::BitCentring& how)
      : Model(model->name(), model->inputs()), model_(std::move(model)), how_(how) {
    if (model_->training(1).size() != 1)
      bad_input("quantise.scheme = \"halp\" needs a model whose step has one phase, but {} takes turns", name());
  }

  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases = model_->training(samples);
    Graph& graph = phases[0].graph;
    std::set<std::string> trained;
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      if (graph.contributions()[i]) trained.insert(graph.parameters()[i].name);
    Twice twice = run_twice(without_backward(graph), trained, how_);
    graph = std::move(twice.graph);
    // Each of the two weighs in with the sign that its own gradient gives it.
    differentiate(graph, ops::add(graph, twice.at_weights, twice.at_centre),
                  [&](const Parameter& p) { return trained.contains(p.name); });
    return phases;
  }
  Graph evaluation(std::int64_t samples) const override { return model_->evaluation(samples); }
  Graph prediction(std::int64_t samples) const override { return model_->prediction(samples); }
  const ops::BitCentring& how() const { return how_; }

 private:
  std::unique_ptr<Model> model_;
  ops::BitCentring how_;
};

}  // namespace

bool is_bit_centred(const Model& model) { return dynamic_cast<const BitCentred*>(&model) != nullptr; }

bool agrees_after(const Model& model, std::int64_t step) {
  const auto* centred = dynamic_cast<const BitCentred*>(&model);
  return centred && step % centred->how().period == centred->how().gather;
}

bool is_full_gradient(const std::string& parameter) { return parameter.ends_with(std::string(".") + full_gradient); }

std::unique_ptr<Model> bit_centred(std::unique_ptr<Model> model, const ops::BitCentring& how) {
  return std::make_unique<BitCentred>(std::move(model), how);
}

}  // namespace echelon::models
