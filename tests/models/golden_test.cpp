// The five reference networks, and two written as layers of a recipe, against numbers that PyTorch computed in double
// precision (tools/golden_torch.py): outputs, every gradient, batch norm's statistics, ten losses of training.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "base/json.h"
#include "models/zoo.h"
#include "optim/optim.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/source_path.h"

namespace echelon::models {
namespace {

// The hashes of tools/golden_torch.py.
std::uint32_t hash(const std::string& name, std::size_t index) {
  std::uint32_t x = 2166136261u;
  for (char c : name) x = (x ^ static_cast<unsigned char>(c)) * 16777619u;
  x += static_cast<std::uint32_t>(index) * 0x9E3779B9u;
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}
double uniform(const std::string& name, std::size_t index) { return hash(name, index) * 0x1p-32 - 0.5; }

void first_values(const Parameter& p, std::span<float> out) {
  const bool near_one = p.name.ends_with(".weight") || p.name.ends_with(".running_var");
  const double bound = 2 / std::sqrt(static_cast<double>(p.shape.elements() / p.shape[0]));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double u = uniform(p.name, i);
    out[i] = static_cast<float>(p.shape.rank() >= 2 ? u * bound : near_one ? 1 + 0.2 * u : 0.2 * u);
  }
}

Json load(const std::string& network) {
  const std::string path = source_path("tests/models/golden/") + network + ".json";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path);
}

// Elements may differ by `tolerance` of themselves and of the tensor's own scale.
void compare(const Json& golden, std::span<const float> found, double tolerance, const std::string& what) {
  double sum = 0, square = 0;
  for (float v : found) sum += v, square += static_cast<double>(v) * v;
  const double norm = golden["norm"], count = static_cast<double>(found.size());
  EXPECT_NEAR(std::sqrt(square), norm, tolerance * norm + 1e-9) << what << ": norm";
  EXPECT_NEAR(sum, golden["sum"].get<double>(), tolerance * norm * std::sqrt(count) + 1e-9) << what << ": sum";
  for (std::size_t i = 0; i < golden["at"].size(); ++i) {
    const std::size_t at = golden["at"][i];
    ASSERT_LT(at, found.size()) << what;
    const double expected = golden["values"][i];
    EXPECT_NEAR(found[at], expected, tolerance * (std::abs(expected) + norm / std::sqrt(count)) + 1e-9)
        << what << " at " << at;
  }
}

// The networks that are written out. Names and layers are those of tools/golden_torch.py.
const std::map<std::string, const char*> written = {{"layers_of_images", R"(layers = [
      {type = "conv2d", out = 8, stride = 2, padding = 1, name = "conv"},
      {type = "group_norm", groups = 4, name = "norm"},
      {type = "silu"},
      {type = "depthwise", padding = 1, name = "depth"},
      {type = "conv_transpose2d", out = 6, stride = 2, padding = 1, output_padding = 1, name = "up"},
      {type = "gelu", name = "seen"},
      {type = "global_avg_pool"},
      {type = "linear", out = 6, name = "gate"},
      {type = "sigmoid", name = "share"},
      {type = "multiply", inputs = ["seen", "share"]},
      {type = "global_avg_pool"},
      {type = "linear", out = 10, name = "out"}])"},
                                                    {"layers_of_sequences", R"(layers = [
      {type = "lstm", hidden = 5, layers = 2, bidirectional = true, name = "read"},
      {type = "transpose", input = "input"},
      {type = "conv1d", out = 8, stride = 2, padding = 1, name = "conv"},
      {type = "gelu"},
      {type = "transpose", name = "memory"},
      {type = "cross_attention", heads = 2, inputs = ["read", "memory"], name = "cross"},
      {type = "layer_norm", name = "norm"},
      {type = "gru", hidden = 4, bidirectional = true, output = "last", name = "back"},
      {type = "linear", out = 10, name = "out"}])"}};

class Golden : public testing::TestWithParam<const char*> {};

void fill(const Model& model, const std::string& name, test::GraphRunner& runner) {
  const InputSpec& in = model.inputs();
  if (in.input().type.dtype == DType::f32) {
    std::size_t i = 0;
    for (float& v : runner.input<float>(in.input().name)) v = static_cast<float>(uniform(name, i++) + 0.5);
  } else {
    std::size_t i = 0;
    for (auto& v : runner.input<std::int32_t>(in.input().name))
      v = static_cast<std::int32_t>(hash(name, i++) % static_cast<std::uint32_t>(in.classes));
  }
  std::size_t i = 0;
  for (auto& v : runner.input<std::int32_t>(in.target.name))
    v = static_cast<std::int32_t>(hash("target", i++) % static_cast<std::uint32_t>(in.classes));
}

TEST_P(Golden, OutputsGradientsAndTenLosses) {
  const std::string network = GetParam();
  const Json golden = load(network);
  const auto layers = written.find(network);
  const std::string name = layers == written.end() ? network : "layers";
  InputSpec inputs = find_model(name).usual_inputs();
  inputs.inputs[0].type.shape = Shape(golden["sample"].get<std::vector<std::int64_t>>());
  const auto model =
      make_model(name, inputs, layers == written.end() ? Options{} : parse_toml(layers->second, "golden_test"));
  const std::int64_t batch = golden["batch"];
  Phase phase = std::move(model->training(batch)[0]);
  const Graph evaluation = model->evaluation(batch);
  test::ModelMemory memory({&phase.graph, &evaluation});
  EXPECT_EQ(memory.table.weights(), golden["parameters"].get<std::int64_t>());
  for (const auto& entry : memory.table.entries())
    first_values(entry.parameter, memory.parameter(entry.parameter.name));

  test::GraphRunner tested(evaluation, memory), trained(phase.graph, memory);
  fill(*model, golden["input"], tested);
  fill(*model, golden["input"], trained);
  tested.run();
  compare(golden["evaluation_logits"], tested.output("logits"), 1e-4, "evaluation");

  // The step as the trainer makes it: one slice that is the whole batch.
  const StepContext context{.loss_scale = 1 / static_cast<float>(batch * phase.loss_terms)};
  auto loss = [&] {
    trained.run(context);
    return trained.scalar("loss") * context.loss_scale;
  };
  EXPECT_NEAR(loss(), golden["losses"][0].get<double>(), 1e-4);
  EXPECT_EQ(trained.scalar("correct"), golden["correct"].get<float>());
  std::size_t weights = 0;
  for (const auto& entry : memory.table.entries()) {
    const std::string& name = entry.parameter.name;
    if (entry.parameter.kind == Parameter::Kind::weight) {
      ++weights;
      ASSERT_TRUE(golden["gradients"].contains(name)) << name;
      compare(golden["gradients"][name], memory.contribution(name), 5e-4, name);
    } else {  // as the update moves it
      const auto old = memory.parameter(name), now = memory.contribution(name);
      std::vector<float> moved(old.size());
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = old[i] + entry.parameter.rate * (now[i] - old[i]);
      compare(golden["statistics"][name], moved, 1e-4, name);
    }
  }
  EXPECT_EQ(weights, golden["gradients"].size());

  Options options;
  options.items["name"].value = std::string(network == "gpt" ? "adamw" : "momentum");
  options.items["lr"].value = network == "gpt" ? 1e-4 : 0.01;
  Problems problems;
  OptionReader reader(options, problems);
  Optim optim = read_optim(reader);
  problems.throw_if_any("optim");
  std::vector<TrainedSpan> segments;
  for (const auto& entry : memory.table.entries())
    segments.push_back({.offset = entry.offset,
                        .size = entry.size,
                        .decays = entry.parameter.decays,
                        .statistic = entry.parameter.kind == Parameter::Kind::statistic,
                        .rate = entry.parameter.rate});
  Update update(std::move(optim.rule), optim.clip, segments, memory.parameters.as<float>(),
                memory.contributions.as<float>());
  for (int step = 0; step < 10; ++step) {
    const double expected = golden["losses"][static_cast<std::size_t>(step)];
    EXPECT_NEAR(loss(), expected, 2e-4 + 2e-3 * expected) << "step " << step;
    update.run_alone({.number = step + 1, .lr = optim.lr, .grad_scale = 1});
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden,
                         testing::Values("mlp", "lenet5", "resnet18", "gpt", "lstm", "layers_of_images",
                                         "layers_of_sequences"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace echelon::models
