// Import, judged by PyTorch: tools/golden_onnx.py stored what it exported and what it computed.
#include "onnx/import.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/zoo.h"
#include "onnx/export.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "tests/support/zoo_networks.h"

namespace echelon::onnx {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Model golden_file(const std::string& name) {
  const std::string bytes = bytes_of(source_path("tests/onnx/golden/" + name + ".onnx"));
  return read(std::as_bytes(std::span(bytes)));
}

// The imported network as a recipe would make it, through TOML and back.
std::unique_ptr<models::Model> model_of(const ImportedNetwork& n) {
  Options options;
  options.items["layers"] = {.value = n.layers};
  const Options again = parse_toml(write_toml(options), "imported.toml");
  models::InputSpec spec;
  spec.inputs = n.inputs;
  const bool text = n.inputs[0].type.dtype == DType::i32 && n.output.rank() == 2;
  spec.target =
      text ? models::InputSpec::Field{"targets", n.inputs[0].type, {}} : models::InputSpec::Field{"label", i32({}), {}};
  spec.classes = n.output[-1];
  return models::make_model("layers", spec, again);
}

void load(const ImportedNetwork& n, test::ModelMemory& memory) {
  EXPECT_EQ(n.weights.size(), memory.table.entries().size());
  for (const NamedWeights& w : n.weights) {
    ASSERT_EQ(memory.table.find(w.name).parameter.shape, w.shape) << w.name;
    std::ranges::copy(w.numbers, memory.parameter(w.name).begin());
  }
}

template <typename Numbers>
void give(test::GraphRunner& runner, const ImportedNetwork& n, const Numbers& numbers) {
  const std::string& name = n.inputs[0].name;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (n.inputs[0].type.dtype == DType::i32)
      runner.input<std::int32_t>(name)[i] = static_cast<std::int32_t>(numbers[i]);
    else
      runner.input<float>(name)[i] = static_cast<float>(numbers[i]);
}

class PyTorchNetworks : public testing::TestWithParam<std::string> {};

TEST_P(PyTorchNetworks, GiveTheSameOutputsAndGoOnTraining) {
  const ImportedNetwork n = import_model(golden_file(GetParam()));
  const auto golden = nlohmann::json::parse(bytes_of(source_path("tests/onnx/golden/" + GetParam() + ".json")));
  const auto x = golden["x"].get<std::vector<double>>(), y = golden["y"].get<std::vector<double>>();
  const auto model = model_of(n);
  const Graph prediction = model->prediction(2);
  const auto phases = model->training(2);
  test::ModelMemory memory({&prediction, &phases[0].graph});
  load(n, memory);
  test::GraphRunner predict(prediction, memory), train(phases[0].graph, memory);
  give(predict, n, x);
  predict.run();
  const auto said = predict.output("logits");
  ASSERT_EQ(said.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(static_cast<double>(said[i]), y[i], 1e-5 * std::max(1.0, std::abs(y[i]))) << i;

  // Every weight has a gradient, and following it lowers the loss.
  give(train, n, x);
  const std::string target = model->inputs().target.name;
  for (auto& label : train.input<std::int32_t>(target)) label = 1;
  const auto loss_after = [&](int steps) {
    for (int s = 0; s < steps; ++s) {
      train.run({.seed = 1, .step = static_cast<std::uint32_t>(s), .loss_scale = 0.5f});
      for (std::size_t i = 0; i < memory.table.entries().size(); ++i) {
        const auto& p = memory.table.entries()[i].parameter;
        if (p.kind != Parameter::Kind::weight) continue;
        const auto d = memory.contribution(p.name);
        const auto w = memory.parameter(p.name);
        for (std::size_t k = 0; k < d.size(); ++k) w[k] -= 0.02f * d[k];
      }
    }
    return train.scalar("loss");
  };
  const float before = loss_after(1), after = loss_after(10);
  EXPECT_LT(after, before);
}

INSTANTIATE_TEST_SUITE_P(Import, PyTorchNetworks,
                         testing::Values("mlp", "lenet", "resnet18", "resnet18_norms", "vgg", "densenet", "mobilenet",
                                         "lstm", "lstm_last", "gru", "bilstm", "gpt", "gpt_opset14"),
                         [](const auto& info) { return info.param; });

TEST(OnnxImport, KeepsPyTorchsNames) {
  std::set<std::string> names;
  for (const NamedWeights& w : import_model(golden_file("resnet18_norms")).weights) names.insert(w.name);
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer2.0.downsample.0.weight", "fc.bias"})
    EXPECT_TRUE(names.contains(name)) << name;
  names.clear();
  for (const NamedWeights& w : import_model(golden_file("gpt")).weights) names.insert(w.name);
  for (const char* name : {"wte.weight", "h.0.attn.c_attn.weight", "h.1.mlp.0.bias", "h.0.ln_1.weight"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// What we export ourselves comes back as a network that says the same.
TEST(OnnxImport, ReadsWhatExportWrites) {
  for (const std::string name : {"lenet5", "resnet20", "vgg13", "densenet40", "lstm", "gru", "gpt", "mlp"}) {
    const auto networks = test::small_networks();
    const auto it = std::ranges::find_if(
        networks, [&](const auto& n) { return n.model == name && n.options.find("slices") == std::string::npos; });
    const auto model = models::make_model(it->model, it->inputs, parse_toml(it->options, "test"));
    const Graph ours = model->prediction(3);
    test::ModelMemory memory({&ours});
    const Model file = export_model(*model, memory.table, memory.parameters.as<float>());
    const ImportedNetwork n = import_model(file);
    const auto again = model_of(n);
    const Graph theirs = again->prediction(3);
    test::ModelMemory copy({&theirs});
    load(n, copy);
    test::GraphRunner first(ours, memory), second(theirs, copy);
    std::vector<double> x;
    for (int i = 0; i < static_cast<int>(ours.type(ours.inputs()[0].value).elements()); ++i) x.push_back(i * 7 % 5);
    give(first, n, x), give(second, n, x);
    first.run(), second.run();
    const auto a = first.output("logits"), b = second.output("logits");
    ASSERT_EQ(a.size(), b.size()) << name;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, std::abs(a[i]))) << name;
  }
}

std::string refusal_of(const Model& file) {
  try {
    import_model(file);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

TEST(OnnxImport, RefusesAnUnknownOpByNameWithItsPlace) {
  Model file = golden_file("mlp");
  file.nodes[2].type = "Celu";
  const std::string said = refusal_of(file);
  for (const char* part : {"node 2", "/2/LeakyRelu", "Celu", "not read"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(OnnxImport, RefusesWhatDoesNotFit) {
  Model shape = golden_file("lenet");
  shape.inputs[0].dims = {-1, 3, 28, 28};
  EXPECT_NE(refusal_of(shape).find("the layer needs [3, 3, 5, 5]"), std::string::npos) << refusal_of(shape);
  Model open = golden_file("lenet");
  open.inputs[0].dims = {-1, 1, -1, 28};
  EXPECT_NE(refusal_of(open).find("open"), std::string::npos) << refusal_of(open);
  Model cut = golden_file("mlp");
  cut.nodes.erase(cut.nodes.begin());
  EXPECT_NE(refusal_of(cut).find("nothing before it gives"), std::string::npos) << refusal_of(cut);
}

// An extent of nothing beside extents whose product no number holds: neither read nor computed.
TEST(OnnxImport, RefusesExtentsThatNothingHides) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Ints& dims : {Ints{0, most / 2, 4}, Ints{most / 2, 0}, Ints{0, most}}) {
    Model stored = golden_file("mlp");
    stored.initializers[0].dims = dims, stored.initializers[0].bytes.clear();
    const std::string bytes = write(stored);
    EXPECT_THROW(read(std::as_bytes(std::span(bytes))), BadInput);
    Model computed = golden_file("mlp");
    computed.initializers.push_back(integers("extents", {std::ssize(dims)}, dims));
    computed.nodes[0].in[1] = "filled";  // the weights of a Gemm
    computed.nodes.insert(computed.nodes.begin(), {"fill", "ConstantOfShape", "", {"extents"}, {"filled"}, {}});
    const std::string refusal = refusal_of(computed);
    EXPECT_TRUE(test::says(refusal, "larger than any") || test::says(refusal, "too large")) << refusal;
  }
}

TEST(OnnxImport, RefusesAnElementThatIsNotThere) {
  for (const std::int64_t index :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Model file = golden_file("mlp");
    file.initializers.push_back(integers("index", {}, std::array{index}));
    file.nodes.insert(file.nodes.begin(), file.nodes[0]);
    Node& gather = file.nodes[0];
    gather.type = "Gather", gather.in = {file.inputs[0].name, "index"}, gather.out = {"gathered"};
    gather.attributes = {{"axis", {.integer = 1}}};
    file.nodes[1].in[0] = "gathered";
    EXPECT_NE(refusal_of(file).find("there is no element"), std::string::npos) << refusal_of(file);
  }
}

TEST(OnnxImport, RefusesDamagedFilesWithTheirOffset) {
  const std::string bytes = bytes_of(source_path("tests/onnx/golden/mlp.onnx"));
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_THROW(read(std::as_bytes(std::span(bytes).first(size))), BadInput) << size;
}

}  // namespace
}  // namespace echelon::onnx
