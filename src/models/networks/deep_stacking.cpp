#include "models/networks/deep_stacking.h"

#include <fmt/format.h>

#include "graph/gradient.h"
#include "graph/ops/stop_gradient.h"

namespace echelon::models {
namespace {

struct StackingOptions {
  int modules = 3;
  std::int64_t hidden = 256;
};

class DeepStacking final : public Model {
 public:
  DeepStacking(InputSpec inputs, const StackingOptions& options)
      : Model("deep_stacking", std::move(inputs)), options_(options) {}

  Task task() const override { return Task::classify; }
  std::vector<Phase> training(std::int64_t samples) const override {
    Graph graph(true);
    build(graph, samples, true);
    differentiate(graph, graph.outputs().at("loss"));
    std::vector<Phase> phases;
    phases.push_back({"train", std::move(graph), 1});
    return phases;
  }
  // The loss is that of the last module.
  Graph evaluation(std::int64_t samples) const override {
    Graph graph(false);
    graph.set_output("logits", build(graph, samples, true));
    return graph;
  }
  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    const Value logits = build(graph, samples, false);
    graph.set_output("logits", logits);
    graph.set_output("probabilities", nn::Net(graph).softmax(logits));
    return graph;
  }

 private:
  static Value field_input(Graph& graph, const InputSpec::Field& field, std::int64_t samples) {
    std::vector<std::int64_t> dims{samples};
    dims.insert(dims.end(), field.type.shape.dims().begin(), field.type.shape.dims().end());
    return graph.input(field.name, {field.type.dtype, Shape(dims), Layout::plain});
  }

  // Returns the scores of the last module.
  Value build(Graph& graph, std::int64_t samples, bool with_loss) const {
    nn::Net net(graph);
    Value x = field_input(graph, inputs_.input(), samples), target, scores, loss;
    if (with_loss) target = field_input(graph, inputs_.target, samples);
    if (net.shape(x).rank() != 2) x = net.flatten(x);
    for (int k = 1; k <= options_.modules; ++k) {
      const auto module = net.block(fmt::format("module{}", k));
      Value seen = x;
      if (scores) {
        const Value before = net.softmax(scores);
        seen = net.concat({x, graph.training() ? ops::stop_gradient(graph, before) : before});
      }
      const Value hidden = net.sigmoid(net.named("hidden").linear(seen, options_.hidden));
      scores = net.named("out").linear(hidden, inputs_.classes);
      if (!with_loss) continue;
      const nn::Classified own = net.weighted_cross_entropy(scores, target, 0, {});
      loss = loss && graph.training() ? net.add(loss, own.loss) : own.loss;
      if (k == options_.modules) graph.set_output("correct", own.correct);
    }
    if (with_loss) graph.set_output("loss", loss);
    return scores;
  }

  StackingOptions options_;
};

}  // namespace

std::unique_ptr<Model> make_deep_stacking(OptionReader& options, const InputSpec& inputs) {
  const StackingOptions o{.modules = static_cast<int>(options.integer("modules", 3, 1, 1024)),
                          .hidden = options.integer("hidden", 256, 1, 1 << 20)};
  check_one_input("deep_stacking", options, inputs);
  if (inputs.classes < 1 || inputs.input().type.dtype != DType::f32)
    options.problem("name", "is deep_stacking, which tells classes apart from numbers; the data set has others");
  if (!inputs.loss.name.empty() && inputs.loss.name != "cross_entropy")
    options.problem("name", "is deep_stacking, whose modules have the loss cross_entropy each: leave out [loss]");
  InputSpec complete = inputs;
  complete.loss = {.name = "cross_entropy"};
  return std::make_unique<DeepStacking>(std::move(complete), o);
}

}  // namespace echelon::models
