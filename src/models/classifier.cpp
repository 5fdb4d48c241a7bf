// Models that give scores or numbers for a sample: of classes, of labels, or a regression.
#include "models/network.h"

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "models/networks/network_parts.h"

namespace echelon::models {
namespace {

std::vector<Value> add_inputs(Graph& graph, const InputSpec& inputs, std::int64_t samples) {
  std::vector<Value> values;
  for (const auto& field : inputs.inputs) values.push_back(add_input(graph, field, samples));
  return values;
}

class Classifier : public Model {
 public:
  Classifier(std::string name, InputSpec inputs, ScoringNetwork network)
      : Model(std::move(name), std::move(inputs)), network_(std::move(network)) {}

  Task task() const override {
    const std::string& loss = inputs_.loss.name;
    return loss == "cross_entropy" ? Task::classify : loss == "binary" ? Task::multi_label : Task::regress;
  }
  std::vector<Phase> training(std::int64_t samples) const override {
    return one_phase(with_loss(true, samples), task() == Task::classify ? 1 : outputs_of(inputs_));
  }
  Graph evaluation(std::int64_t samples) const override { return with_loss(false, samples); }
  Value scores(Graph& graph, std::span<const Value> inputs) const override {
    nn::Net net(graph);
    const Scores scores = network_(net, inputs);
    if (!scores.auxiliary.empty() || !net.extra_losses().empty())
      bad_input("{} has losses of its own inside, so it cannot be a member or a student", name_);
    check_scores(net, scores.main, {net.shape(inputs[0])[0], outputs_of(inputs_)});
    return scores.main;
  }
  std::unique_ptr<const Model> of_length(std::int64_t rows) const override {
    if (!inputs_.left_padded) return nullptr;
    InputSpec cut = inputs_;
    cut.inputs.front().type.shape[0] = rows;
    return std::make_unique<Classifier>(name_, std::move(cut), network_);
  }
  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    nn::Net net(graph);
    const Value scores = network_(net, add_inputs(graph, inputs_, samples)).main;
    graph.set_output(output_name(), scores);
    if (task() == Task::classify) graph.set_output("probabilities", net.softmax(scores));
    if (task() == Task::multi_label) graph.set_output("probabilities", net.sigmoid(scores));
    return graph;
  }

 private:
  const char* output_name() const { return task() == Task::regress ? "output" : "logits"; }

  Graph with_loss(bool training, std::int64_t samples) const {
    Graph graph(training);
    nn::Net net(graph);
    const Scores scores = network_(net, add_inputs(graph, inputs_, samples));
    check_scores(net, scores.main, {samples, outputs_of(inputs_)});
    const Value target = add_input(graph, inputs_.target, samples);
    const nn::Classified main = compare(net, scores.main, target);
    Value loss = main.loss;
    if (training)
      for (Value other : scores.auxiliary)
        loss = net.add(loss, ops::scale(graph, compare(net, other, target).loss, scores.auxiliary_weight));
    graph.set_output("loss", with_extra_losses(net, loss));
    if (main.correct) graph.set_output("correct", main.correct);
    if (!training) graph.set_output(output_name(), scores.main);
    return graph;
  }

  nn::Classified compare(nn::Net& net, Value scores, Value target) const {
    const LossSpec& loss = inputs_.loss;
    if (task() == Task::classify) return compare_classes(net, loss, scores, target);
    const Value wanted = net.shape(target).rank() == 2 ? target : net.reshape(target, {inputs_.target.type.elements()});
    if (loss.name == "binary") return {net.bce_with_logits(scores, wanted), {}};
    if (loss.name == "mse") return {net.mse(scores, wanted), {}};
    if (loss.name == "mae") return {net.l1(scores, wanted), {}};
    if (loss.name == "quantile") return {net.quantile_loss(scores, wanted, loss.quantiles), {}};
    return {net.huber(scores, wanted, loss.delta), {}};
  }

  ScoringNetwork network_;
};

}  // namespace

std::unique_ptr<Model> classifier(std::string name, OptionReader& options, const InputSpec& inputs,
                                  ScoringNetwork network) {
  if (inputs.target.name.empty())
    options.problem("name", fmt::format("is {}, which learns from targets, but the data set has none", name));
  InputSpec complete = inputs;
  complete.loss = with_older_keys(options, inputs);
  return std::make_unique<Classifier>(std::move(name), std::move(complete), std::move(network));
}

std::unique_ptr<Model> classifier(std::string name, OptionReader& options, const InputSpec& inputs, Network network) {
  check_one_input(name, options, inputs);
  return classifier(std::move(name), options, inputs,
                    [network = std::move(network)](nn::Net& net, std::span<const Value> x) {
                      return Scores{network(net, x[0]), {}, 0};
                    });
}

}  // namespace echelon::models
