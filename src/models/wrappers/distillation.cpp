#include "models/wrappers/distillation.h"

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/softmax.h"
#include "graph/ops/stop_gradient.h"
#include "models/networks/network_parts.h"
#include "models/wrappers/ensemble.h"

namespace echelon::models {

namespace {

class Distilled : public Model {
 public:
  Distilled(std::unique_ptr<Model> student, std::unique_ptr<const Model> teacher, const TeacherSpec& spec)
      : Model(student->name(), student->inputs()),
        student_(std::move(student)),
        teacher_(std::move(teacher)),
        spec_(spec) {}

  Task task() const override { return Task::classify; }

  std::vector<Phase> training(std::int64_t samples) const override {
    Graph graph(true);
    std::vector<Value> inputs;
    for (const auto& field : inputs_.inputs) inputs.push_back(add_input(graph, field, samples));
    const Value target = add_input(graph, inputs_.target, samples);
    const Value taught = teachers_scores(graph, inputs, samples);
    nn::Net net(graph);
    const Value scores = student_->scores(graph, inputs);
    const nn::Classified labels = compare_classes(net, inputs_.loss, scores, target);
    const auto weight = static_cast<float>(spec_.weight), cold = static_cast<float>(1 / spec_.temperature);
    const Value softened = ops::softmax(graph, ops::scale(graph, taught, cold));
    const Value lesson = soft_cross_entropy(graph, softened, ops::scale(graph, scores, cold));
    // Gradients of softened scores are smaller by the temperature's square.
    graph.set_output("loss", ops::add(graph, ops::scale(graph, labels.loss, 1 - weight),
                                      ops::scale(graph, lesson, weight / (cold * cold))));
    graph.set_output("correct", labels.correct);
    return one_phase(std::move(graph), 1);
  }
  Graph evaluation(std::int64_t samples) const override { return student_->evaluation(samples); }
  Graph prediction(std::int64_t samples) const override { return student_->prediction(samples); }

 private:
  Value teachers_scores(Graph& graph, const std::vector<Value>& inputs, std::int64_t samples) const {
    const Graph own = teacher_->prediction(samples);
    std::vector<Value> now(static_cast<std::size_t>(own.values()));
    for (std::size_t i = 0; i < own.inputs().size(); ++i)
      now[static_cast<std::size_t>(own.inputs()[i].value.id)] = inputs[i];
    for (std::size_t i = 0; i < own.parameters().size(); ++i) {
      Parameter p = own.parameters()[i];
      p.name = teacher_prefix + p.name;
      now[static_cast<std::size_t>(own.parameter_value(i).id)] = graph.parameter(p);
    }
    for (const Node& node : own.nodes()) {
      graph.set_layer(teacher_prefix + node.layer);
      std::vector<Value> in;
      for (const Value v : node.in) in.push_back(now[static_cast<std::size_t>(v.id)]);
      const std::vector<Value> out = graph.add(node.op, in);
      for (std::size_t k = 0; k < out.size(); ++k) now[static_cast<std::size_t>(node.out[k].id)] = out[k];
    }
    const Value scores = ops::stop_gradient(graph, now[static_cast<std::size_t>(own.outputs().at("logits").id)]);
    graph.set_layer("");
    return scores;
  }

  std::unique_ptr<Model> student_;
  std::unique_ptr<const Model> teacher_;
  TeacherSpec spec_;
};

}  // namespace

std::unique_ptr<Model> distilled(std::unique_ptr<Model> student, std::unique_ptr<const Model> teacher,
                                 const TeacherSpec& spec) {
  if (student->task() != Task::classify || teacher->task() != Task::classify)
    bad_input("a teacher teaches probabilities of classes, and {} has none",
              student->task() != Task::classify ? student->name() : teacher->name());
  auto made = std::make_unique<Distilled>(std::move(student), std::move(teacher), spec);
  made->training(2);
  return made;
}

}  // namespace echelon::models
