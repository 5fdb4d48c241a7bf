// Models of several networks: members that learn as if they were alone, trunks, and what is learnt from predictions.

#include "models/wrappers/ensemble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "models/wrappers/distillation.h"
#include "models/zoo.h"
#include "nn/initialise.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"

namespace echelon {
namespace {

std::unique_ptr<models::Model> model_of(const std::string& settings) {
  const Options table = parse_toml("hidden = [8, 6]\n" + settings, "model");
  return models::make_model("mlp", {.inputs = {{"x", f32({5})}}, .target = {"label", i32({})}, .classes = 3}, table);
}

std::vector<std::string> names_in(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters()) names.push_back(p.name);
  std::ranges::sort(names);
  return names;
}

bool has(const Graph& graph, const std::string& name) { return std::ranges::count(names_in(graph), name) == 1; }

TEST(Ensemble, HasWeightsOfItsOwnForEveryMember) {
  const Graph one = model_of("")->prediction(2), three = model_of("members = 3")->prediction(2);
  EXPECT_EQ(three.parameters().size(), 3 * one.parameters().size());
  for (const std::string& name : names_in(one))
    for (int m = 0; m < 3; ++m) EXPECT_TRUE(has(three, fmt::format("member{}.{}", m, name))) << name;
}

TEST(Ensemble, SharesItsTrunk) {
  const Graph one = model_of("")->prediction(2);
  const std::string first = one.nodes().front().layer;
  const Graph tree = model_of("members = 3\ntrunk = '" + first + "'")->prediction(2);
  EXPECT_EQ(tree.parameters().size(), 3 * one.parameters().size() - 2 * 2);  // a weight and a bias, once
  EXPECT_TRUE(has(tree, "trunk." + first + ".weight"));
  EXPECT_FALSE(has(tree, "member1." + first + ".weight"));
}

// Members are slices: no node of one reads what a node of another has made, but to add up.
TEST(Ensemble, MembersMeetOnlyInSums) {
  for (const char* settings : {"members = 4", "members = 4\ncodistil = 1"}) {
    const auto phases = model_of(settings)->training(2);
    const Graph& graph = phases[0].graph;
    std::set<std::string> meetings;
    std::int64_t most = 0;
    for (const Node& node : graph.nodes())
      for (const Value v : node.in) {
        const int from = graph.slice_of(v);
        if (from < 0 || from == node.slice) continue;
        meetings.insert(std::string(node.op->name()));
        most = std::max(most, graph.type(v).elements());
      }
    EXPECT_EQ(meetings, std::set<std::string>{"tree_sum"});
    EXPECT_EQ(most, std::string(settings).find("codistil") == std::string::npos ? 1 : 2 * 3);  // losses; predictions
  }
}

// A run on one sample, with the ensemble's weights or one member's.
struct Answered {
  std::vector<float> probabilities, gradient;
};
constexpr std::array<float, 5> sample{0.3f, -1, 2, 0.5f, 1};

Answered answer_of(const models::Model& model, const std::string& weight, test::ModelMemory* from, int member) {
  const auto phases = model.training(1);
  const Graph training = phases[0].graph, prediction = model.prediction(1);
  test::ModelMemory memory({&training, &prediction}, 7);
  if (from)
    for (const auto& e : memory.table.entries())
      std::ranges::copy(from->parameter(fmt::format("member{}.{}", member, e.parameter.name)),
                        memory.parameter(e.parameter.name).begin());
  test::GraphRunner answers(prediction, memory), learns(training, memory);
  for (test::GraphRunner* run : {&answers, &learns}) std::ranges::copy(sample, run->input<float>("x").begin());
  learns.input<std::int32_t>("label")[0] = 1;
  answers.run(), learns.run();
  const auto gradient = memory.contribution(weight);
  return {answers.output("probabilities"), {gradient.begin(), gradient.end()}};
}

TEST(Ensemble, AnswersWithTheMeanProbabilityAndMembersLearnAsIfAlone) {
  const auto ensemble = model_of("members = 2"), alone = model_of("");
  const std::string weight = alone->prediction(1).parameters()[0].name;
  const Graph graph = ensemble->training(1)[0].graph, prediction = ensemble->prediction(1);
  test::ModelMemory memory({&graph, &prediction}, 7);
  const Answered mean = answer_of(*ensemble, "member1." + weight, nullptr, 0);
  const Answered first = answer_of(*alone, weight, &memory, 0), second = answer_of(*alone, weight, &memory, 1);
  EXPECT_NE(first.probabilities, second.probabilities);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(mean.probabilities[k], (first.probabilities[k] + second.probabilities[k]) / 2, 1e-6);
  for (std::size_t i = 0; i < mean.gradient.size(); ++i) EXPECT_NEAR(mean.gradient[i], second.gradient[i], 1e-6);
}

TEST(Ensemble, CodistilledMembersLearnWhatTheOthersSay) {
  const std::string weight = model_of("")->prediction(1).parameters()[0].name;
  const Answered apart = answer_of(*model_of("members = 2"), "member1." + weight, nullptr, 0),
                 together = answer_of(*model_of("members = 2\ncodistil = 1"), "member1." + weight, nullptr, 0);
  EXPECT_EQ(apart.probabilities, together.probabilities);
  EXPECT_NE(apart.gradient, together.gradient);
}

TEST(Distillation, PullsTheStudentTowardsTheTeacher) {
  const auto student = models::distilled(model_of(""), model_of("members = 2"), {.temperature = 2, .weight = 1});
  const Graph graph = student->training(1)[0].graph, prediction = student->prediction(1);
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    EXPECT_EQ(static_cast<bool>(graph.contributions()[i]), !graph.parameters()[i].name.starts_with("teacher."))
        << graph.parameters()[i].name;  // the teacher does not learn
  for (const Parameter& p : prediction.parameters()) EXPECT_FALSE(p.name.starts_with("teacher."));
  test::ModelMemory memory({&graph}, 7);
  test::GraphRunner learns(graph, memory), answers(prediction, memory);
  for (test::GraphRunner* run : {&learns, &answers}) std::ranges::copy(sample, run->input<float>("x").begin());
  learns.run();
  const float before = learns.scalar("loss");
  for (int step = 0; step < 200; ++step) {
    for (const auto& e : memory.table.entries())
      if (!e.parameter.name.starts_with("teacher."))
        for (std::size_t i = 0; i < e.size; ++i)
          memory.parameter(e.parameter.name)[i] -= 0.05f * memory.contribution(e.parameter.name)[i];
    learns.run();
  }
  EXPECT_LT(learns.scalar("loss"), before);
  const Graph teacher = model_of("members = 2")->prediction(1);
  test::ModelMemory teachers({&teacher});
  for (const auto& e : teachers.table.entries())
    std::ranges::copy(memory.parameter("teacher." + e.parameter.name), teachers.parameter(e.parameter.name).begin());
  test::GraphRunner says(teacher, teachers);
  std::ranges::copy(sample, says.input<float>("x").begin());
  says.run(), answers.run();
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(answers.output("probabilities")[k], says.output("probabilities")[k], 0.02);
}

TEST(Ensemble, IsRefusedWhereItMakesNoSense) {
  const auto text = [](const std::string& settings) {
    try {
      model_of(settings);
      return std::string();
    } catch (const BadInput& problem) {
      return std::string(problem.what());
    }
  };
  EXPECT_NE(text("trunk = 'fc1'").find("set members to 2 or more"), std::string::npos);
  EXPECT_NE(text("members = 2\ntrunk = 'nothing'").find("there is no layer 'nothing'"), std::string::npos);
  EXPECT_NE(text("members = 2\nslices = 2").find("does not go together with model.members"), std::string::npos);
  EXPECT_NE(text("teacher = { name = 'mlp' }").find("[model.init]"), std::string::npos);
}

}  // namespace
}  // namespace echelon
