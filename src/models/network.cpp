#include "models/network.h"

#include <algorithm>

#include "base/error.h"
#include "graph/gradient.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/shape.h"

namespace echelon::models {
namespace {

// A field of one sample as a graph's input: the samples go in front.
Value add_input(Graph& graph, const InputSpec::Field& field, std::int64_t samples) {
  std::vector<std::int64_t> dims{samples};
  dims.insert(dims.end(), field.type.shape.dims().begin(), field.type.shape.dims().end());
  return graph.input(field.name, {field.type.dtype, Shape(dims), Layout::plain});
}

std::vector<Value> add_inputs(Graph& graph, const InputSpec& inputs, std::int64_t samples) {
  std::vector<Value> values;
  for (const auto& field : inputs.inputs) values.push_back(add_input(graph, field, samples));
  return values;
}

// A network written by hand may end with any shape; the targets decide which one is right.
void check_scores(const nn::Net& net, Value scores, const Shape& wanted) {
  if (!(net.shape(scores) == wanted))
    bad_input("the network ends with {}, but the data set's targets need {}", to_string(net.shape(scores)),
              to_string(wanted));
}

// The loss with what layers want added to it while training.
Value with_extra_losses(nn::Net& net, Value loss) {
  const auto scope = net.block("extra_losses");
  for (Value extra : net.extra_losses()) loss = ops::add(net.graph(), loss, extra);
  return loss;
}

// Smoothing is for training only; the weights of the classes and the focal factor are always part of the loss.
nn::Classified compare_classes(nn::Net& net, const LossSpec& loss, Value scores, Value target) {
  return net.weighted_cross_entropy(scores, target, net.training() ? loss.label_smoothing : 0,
                                    {loss.class_weights, loss.focal_gamma});
}

// The one phase of an ordinary model: the graph it would evaluate with, in training, and its backward pass.
std::vector<Phase> one_phase(Graph graph, std::int64_t loss_terms) {
  differentiate(graph, graph.outputs().at("loss"));
  return {{"train", std::move(graph), loss_terms}};
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

class Autoencoder : public Model {
 public:
  Autoencoder(std::string name, InputSpec inputs, float noise, bool unit_range, Network network)
      : Model(std::move(name), std::move(inputs)),
        noise_(noise),
        unit_range_(unit_range),
        network_(std::move(network)) {}

  Task task() const override { return Task::reconstruct; }
  std::vector<Phase> training(std::int64_t samples) const override {
    return one_phase(with_loss(true, samples), inputs_.input().type.elements());
  }
  Graph evaluation(std::int64_t samples) const override { return with_loss(false, samples); }
  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    nn::Net net(graph);
    graph.set_output("output", made(net, network_(net, add_input(graph, inputs_.input(), samples))));
    return graph;
  }

 private:
  Value made(nn::Net& net, Value logits) const { return unit_range_ ? net.sigmoid(logits) : logits; }

  // The network sees the image with noise on it, and is asked for the image.
  Graph with_loss(bool training, std::int64_t samples) const {
    Graph graph(training);
    nn::Net net(graph);
    const Value image = add_input(graph, inputs_.input(), samples);
    Value seen = image;
    if (noise_ > 0) {
      const auto scope = net.block("noise");
      seen = ops::add(graph, image, ops::scale(graph, ops::normal_noise(graph, net.shape(image)), noise_));
    }
    const Value logits = network_(net, seen);
    const Value loss = unit_range_ ? net.bce_with_logits(logits, image) : net.mse(logits, image);
    graph.set_output("loss", with_extra_losses(net, loss));
    if (!training) {
      graph.set_output("output", made(net, logits));
      graph.set_output("noisy", seen);
    }
    return graph;
  }

  float noise_;
  bool unit_range_;
  Network network_;
};

// The loss of a recipe's [loss]; without one, of the keys that [model] has had for it.
LossSpec with_older_keys(OptionReader& options, const InputSpec& inputs) {
  LossSpec loss = inputs.loss;
  if (!loss.name.empty()) {
    for (const char* key : {"label_smoothing", "loss", "huber_delta"}) {
      if (options.has(key)) options.problem(key, "and the table [loss] are both there; say it in [loss]");
      options.ignore(key);
    }
    return loss;
  }
  if (inputs.classes > 0) {
    loss.name = "cross_entropy";
    loss.label_smoothing = static_cast<float>(options.number("label_smoothing", 0, 0, 0.999));
  } else {
    loss.name = options.choice("loss", "mse", {"mse", "l1", "huber"});
    if (loss.name == "l1") loss.name = "mae";
    loss.delta = static_cast<float>(options.number("huber_delta", 1, 1e-6, 1e6));
  }
  return loss;
}

}  // namespace

std::string_view name_of(Task task) {
  switch (task) {
    case Task::classify: return "classify";
    case Task::multi_label: return "multi_label";
    case Task::regress: return "regress";
    case Task::language: return "language";
    case Task::reconstruct: return "reconstruct";
    case Task::generate: return "generate";
  }
  return "?";
}

std::int64_t outputs_of(const InputSpec& inputs) {
  if (inputs.classes > 0) return inputs.classes;
  return inputs.target.type.elements() * std::max<std::int64_t>(1, std::ssize(inputs.loss.quantiles));
}

void check_one_input(const std::string& name, OptionReader& options, const InputSpec& inputs) {
  if (inputs.inputs.size() <= 1) return;
  std::vector<std::string> names;
  for (const auto& field : inputs.inputs) names.push_back(field.name);
  options.problem("name", fmt::format("is {}, which reads one input, but the data set has {}: {}. tabular reads "
                                      "numbers and categories, layers whatever its layers name",
                                      name, names.size(), fmt::join(names, ", ")));
}

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

std::unique_ptr<Model> autoencoder(std::string name, OptionReader& options, const InputSpec& inputs, Network network) {
  check_one_input(name, options, inputs);
  if (inputs.input().type.dtype != DType::f32)
    options.problem("name", fmt::format("is {}, which needs numbers, but the data set's '{}' is {}", name,
                                        inputs.input().name, to_string(inputs.input().type)));
  const auto noise = static_cast<float>(options.number("noise", 0.3, 0, 1e3));
  const bool unit_range = options.choice("loss", "bce", {"bce", "mse"}) == "bce";
  return std::make_unique<Autoencoder>(std::move(name), inputs, noise, unit_range, std::move(network));
}

}  // namespace echelon::models
