// Models that give scores of the next token at every position of a text.
#include "base/error.h"
#include "graph/ops/shape.h"
#include "models/networks/network_parts.h"

namespace echelon::models {
namespace {

class LanguageModel : public Model {
 public:
  LanguageModel(std::string name, InputSpec inputs, bool carried, Network network)
      : Model(std::move(name), std::move(inputs)), carried_(carried), network_(std::move(network)) {}

  Task task() const override { return Task::language; }
  std::int64_t context() const override { return carried_ ? 1 : inputs_.input().type.elements(); }
  std::vector<Phase> training(std::int64_t samples) const override {
    return one_phase(with_loss(true, samples), inputs_.input().type.elements());
  }
  Graph evaluation(std::int64_t samples) const override { return with_loss(false, samples); }
  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    nn::Net net(graph);
    graph.set_output("logits", scores(net, graph.input(inputs_.input().name, i32({samples, context()}))));
    return graph;
  }
  std::optional<Graph> decoding(std::int64_t samples) const override {
    if (carried_) return {};  // prediction() sees one token already
    Graph graph(false);
    nn::Net net(graph);
    const Value tokens = graph.input(inputs_.input().name, i32({samples, 1}));
    net.decode({.position = graph.input("position", i32({1})), .room = context()});
    try {
      graph.set_output("logits", scores(net, tokens));
    } catch (const BadInput&) {  // a layer that mixes positions
      return {};
    }
    return graph;
  }

 private:
  Value scores(nn::Net& net, Value tokens) const {
    const Value logits = network_(net, tokens);
    const Shape seen = net.shape(tokens);
    check_scores(net, logits, {seen[0], seen[1], inputs_.classes});
    return ops::reshape(net.graph(), logits, {net.shape(tokens).elements(), net.shape(logits)[-1]});
  }

  Graph with_loss(bool training, std::int64_t samples) const {
    Graph graph(training);
    nn::Net net(graph);
    const Value logits = scores(net, add_input(graph, inputs_.input(), samples));
    const auto result = compare_classes(net, inputs_.loss, logits, add_input(graph, inputs_.target, samples));
    graph.set_output("loss", with_extra_losses(net, result.loss));
    graph.set_output("correct", result.correct);
    if (!training) graph.set_output("logits", logits);
    return graph;
  }

  bool carried_;
  Network network_;
};

}  // namespace

std::unique_ptr<Model> language_model(std::string name, OptionReader& options, const InputSpec& inputs, bool carried,
                                      Network network) {
  check_one_input(name, options, inputs);
  const Type& in = inputs.input().type;
  if (in.dtype != DType::i32 || in.shape.rank() != 1 || !(inputs.target.type == in) || inputs.classes < 1)
    options.problem("name", fmt::format("is {}, which needs text: tokens i32[time] and as many targets, but the data "
                                        "set's '{}' is {}",
                                        name, inputs.input().name, to_string(in)));
  InputSpec complete = inputs;
  complete.loss = with_older_keys(options, inputs);
  return std::make_unique<LanguageModel>(std::move(name), std::move(complete), carried, std::move(network));
}

}  // namespace echelon::models
