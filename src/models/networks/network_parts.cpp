#include "models/networks/network_parts.h"

#include <algorithm>

#include "base/error.h"
#include "graph/gradient.h"
#include "graph/ops/elementwise.h"

namespace echelon::models {

Value add_input(Graph& graph, const InputSpec::Field& field, std::int64_t samples) {
  std::vector<std::int64_t> dims{samples};
  dims.insert(dims.end(), field.type.shape.dims().begin(), field.type.shape.dims().end());
  return graph.input(field.name, {field.type.dtype, Shape(dims), Layout::plain});
}

void check_scores(const nn::Net& net, Value scores, const Shape& wanted) {
  if (!(net.shape(scores) == wanted))
    bad_input("the network ends with {}, but the data set's targets need {}", to_string(net.shape(scores)),
              to_string(wanted));
}

Value with_extra_losses(nn::Net& net, Value loss) {
  const auto scope = net.block("extra_losses");
  for (Value extra : net.extra_losses()) loss = ops::add(net.graph(), loss, extra);
  return loss;
}

nn::Classified compare_classes(nn::Net& net, const LossSpec& loss, Value scores, Value target) {
  return net.weighted_cross_entropy(scores, target, net.training() ? loss.label_smoothing : 0,
                                    {loss.class_weights, loss.focal_gamma});
}

std::vector<Phase> one_phase(Graph graph, std::int64_t loss_terms) {
  differentiate(graph, graph.outputs().at("loss"));
  return {{"train", std::move(graph), loss_terms}};
}

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

Value Model::scores(Graph&, std::span<const Value>) const {
  bad_input("{} is more than one network with a loss, so it cannot be a member, a student or a teacher", name_);
}

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

}  // namespace echelon::models
