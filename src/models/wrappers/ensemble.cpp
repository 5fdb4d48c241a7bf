#include "models/wrappers/ensemble.h"

#include "base/error.h"
#include "base/text.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/loss.h"
#include "graph/ops/slices.h"
#include "graph/ops/softmax.h"
#include "graph/ops/stop_gradient.h"
#include "models/networks/network_parts.h"

namespace echelon::models {

namespace {

bool is_in(const std::string& layer, const std::string& of) { return layer == of || layer.starts_with(of + "."); }

class Ensemble : public Model {
 public:
  Ensemble(std::unique_ptr<Model> member, const EnsembleSpec& spec)
      : Model(member->name(), member->inputs()), member_(std::move(member)), spec_(spec) {}

  Task task() const override { return Task::classify; }

  // The loss that is reported is the mean of the members', and each learns as if it were alone.
  std::vector<Phase> training(std::int64_t samples) const override {
    Graph graph(true);
    const Members members = add_members(graph, samples);
    const Value target = add_input(graph, inputs_.target, samples);
    nn::Net net(graph);
    std::vector<Value> probabilities, losses, correct;
    Value all;
    if (spec_.codistil > 0) {
      for (int m = 0; m < spec_.members; ++m) {
        graph.set_slice(m);
        probabilities.push_back(ops::stop_gradient(graph, ops::softmax(graph, members[m])));
      }
      graph.set_slice(-1);
      all = ops::tree_sum(graph, probabilities);
    }
    for (int m = 0; m < spec_.members; ++m) {
      graph.set_slice(m);
      const nn::Classified own = compare_classes(net, inputs_.loss, members[m], target);
      Value loss = own.loss;
      if (all) {
        const float others = 1.0f / static_cast<float>(spec_.members - 1);
        const Value said = ops::scale(graph, ops::sub(graph, all, probabilities[static_cast<std::size_t>(m)]), others);
        loss = ops::add(graph, loss,
                        ops::scale(graph, soft_cross_entropy(graph, ops::stop_gradient(graph, said), members[m]),
                                   static_cast<float>(spec_.codistil)));
      }
      losses.push_back(loss), correct.push_back(own.correct);
    }
    graph.set_slice(-1);
    const auto n = static_cast<float>(spec_.members);
    const Value sum = ops::tree_sum(graph, losses);
    const Value rest = ops::scale(graph, sum, (n - 1) / n);  // counts in the gradient alone
    const Value mean = ops::scale(graph, sum, 1 / n);
    graph.set_output("loss", ops::add(graph, mean, ops::sub(graph, rest, ops::stop_gradient(graph, rest))));
    graph.set_output("correct", ops::scale(graph, ops::tree_sum(graph, correct), 1 / n));
    return one_phase(std::move(graph), 1);
  }

  Graph evaluation(std::int64_t samples) const override {
    Graph graph(false);
    const Value logits = mean_answer(graph, samples);
    nn::Net net(graph);
    const nn::Classified compared =
        compare_classes(net, inputs_.loss, logits, add_input(graph, inputs_.target, samples));
    graph.set_output("loss", compared.loss);
    graph.set_output("correct", compared.correct);
    graph.set_output("logits", logits);
    return graph;
  }

  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    const Value logits = mean_answer(graph, samples);
    graph.set_output("logits", logits);
    graph.set_output("probabilities", ops::softmax(graph, logits));
    return graph;
  }

 private:
  class Members : public std::vector<Value> {  // the scores of each
   public:
    Value operator[](int m) const { return at(static_cast<std::size_t>(m)); }
  };

  Members add_members(Graph& graph, std::int64_t samples) const {
    std::vector<Value> inputs;
    for (const auto& field : inputs_.inputs) inputs.push_back(add_input(graph, field, samples));
    Members scores;
    std::vector<std::vector<Value>> of_trunk;  // what the shared nodes give
    for (int m = 0; m < spec_.members; ++m) scores.push_back(add_member(graph, inputs, m, of_trunk));
    graph.set_slice(-1);
    graph.set_layer("");
    return scores;
  }

  // Built by itself, so that names are the member's, and copied; of the trunk's nodes only the first member's.
  Value add_member(Graph& graph, const std::vector<Value>& inputs, int m,
                   std::vector<std::vector<Value>>& of_trunk) const {
    const std::string prefix = fmt::format("member{}", m);
    Graph own(graph.training());
    std::vector<Value> own_inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      own_inputs.push_back(own.input(inputs_.inputs[i].name, graph.type(inputs[i])));
    Value result;
    {
      const Graph::Scope scope(own, prefix);
      result = member_->scores(own, own_inputs);
    }
    std::size_t trunk = 0;  // nodes
    for (std::size_t i = 0; !spec_.trunk.empty() && i < own.nodes().size(); ++i)
      if (is_in(own.nodes()[i].layer, prefix + "." + spec_.trunk)) trunk = i + 1;
    if (!spec_.trunk.empty() && trunk == 0) refuse_trunk(own, prefix);
    std::vector<Value> now(static_cast<std::size_t>(own.values()));
    for (std::size_t i = 0; i < inputs.size(); ++i) now[static_cast<std::size_t>(own_inputs[i].id)] = inputs[i];
    const auto shared_name = [&](const std::string& name) { return "trunk" + name.substr(prefix.size()); };
    for (std::size_t i = 0; i < own.nodes().size(); ++i) {
      const Node& node = own.nodes()[i];
      const bool shared = i < trunk;
      if (shared && m > 0) {
        for (std::size_t k = 0; k < node.out.size(); ++k)
          now[static_cast<std::size_t>(node.out[k].id)] = of_trunk[i][k];
        continue;
      }
      graph.set_slice(shared ? -1 : m);
      graph.set_layer(shared ? shared_name(node.layer) : node.layer);
      std::vector<Value> in;
      for (const Value v : node.in) {
        Value& there = now[static_cast<std::size_t>(v.id)];
        if (own.info(v).source == ValueInfo::Source::parameter) {
          Parameter p = own.parameters()[static_cast<std::size_t>(own.info(v).producer)];
          if (shared) p.name = shared_name(p.name);
          there = graph.parameter(p);
        }
        in.push_back(there);
      }
      const std::vector<Value> out = graph.add(node.op, in);
      for (std::size_t k = 0; k < out.size(); ++k) now[static_cast<std::size_t>(node.out[k].id)] = out[k];
      if (shared) of_trunk.push_back(out);
    }
    for (std::size_t i = 0; i < own.parameters().size(); ++i)  // running statistics
      if (const Value c = own.contributions()[i]) {
        Parameter p = own.parameters()[i];
        const bool shared = own.info(c).producer >= 0 && static_cast<std::size_t>(own.info(c).producer) < trunk;
        if (shared && m > 0) continue;
        if (shared) p.name = shared_name(p.name);
        graph.set_contribution(graph.parameter(p), now[static_cast<std::size_t>(c.id)]);
      }
    return now[static_cast<std::size_t>(result.id)];
  }

  [[noreturn]] void refuse_trunk(const Graph& own, const std::string& prefix) const {
    std::vector<std::string> layers;
    for (const Node& node : own.nodes()) {
      const std::string layer = node.layer.substr(std::min(node.layer.size(), prefix.size() + 1));
      if (!layer.empty() && (layers.empty() || layers.back() != layer)) layers.push_back(layer);
    }
    bad_input("there is no layer '{}'{}", spec_.trunk, did_you_mean(spec_.trunk, layers));
  }

  // The logarithm of the members' mean probability.
  Value mean_answer(Graph& graph, std::int64_t samples) const {
    const Members members = add_members(graph, samples);
    std::vector<Value> probabilities;
    for (int m = 0; m < spec_.members; ++m) {
      graph.set_slice(m);
      probabilities.push_back(ops::softmax(graph, members[m]));
    }
    graph.set_slice(-1);
    const Value mean = ops::scale(graph, ops::tree_sum(graph, probabilities), 1 / static_cast<float>(spec_.members));
    return ops::log(graph, ops::offset(graph, mean, 1e-20f));
  }

  std::unique_ptr<Model> member_;
  EnsembleSpec spec_;
};

}  // namespace

// -p log q is nowhere below zero, so its sum is its distance from zero.
Value soft_cross_entropy(Graph& graph, Value probabilities, Value scores) {
  const Value logs = ops::log(graph, ops::offset(graph, ops::softmax(graph, scores), 1e-20f));
  const Value terms = ops::scale(graph, ops::mul(graph, probabilities, logs), -1);
  const Value zero = ops::stop_gradient(graph, ops::scale(graph, probabilities, 0));
  return ops::distance_loss(graph, ops::Distance::l1, terms, zero);
}

std::unique_ptr<Model> ensemble(std::unique_ptr<Model> model, const EnsembleSpec& spec) {
  if (model->task() != Task::classify)
    bad_input("members answer with the mean of their probabilities, and {} has none", model->name());
  auto made = std::make_unique<Ensemble>(std::move(model), spec);
  made->training(2);
  return made;
}

}  // namespace echelon::models
