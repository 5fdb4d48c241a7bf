// Export, judged by onnxruntime: the same outputs for every network, at a batch size that the file was not built for.
#include "onnx/export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "kernels/elementwise.h"
#include "onnx/export_ops.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zoo_networks.h"

namespace echelon::onnx {
namespace {

std::unique_ptr<models::Model> make_small(const test::SmallNetwork& n) {
  return models::make_model(n.model, n.inputs, parse_toml(n.options, "test"));
}

// Weights as at the start of a run, and statistics and scales that are not the neutral ones.
void make_restless(test::ModelMemory& memory) {
  std::uint32_t layer = 0;
  for (const auto& entry : memory.table.entries()) {
    const std::string& name = entry.parameter.name;
    const Stream stream({.seed = 5, .step = 1, .shard = 0, .layer = ++layer});
    const bool positive = name.ends_with("running_var");
    if (!positive && entry.parameter.decays) continue;
    auto numbers = memory.parameter(name);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = positive ? 0.5f + stream.uniform(i) : numbers[i] + 0.2f * (stream.uniform(i) - 0.5f);
  }
}

// The prediction graph of a batch, with the noise of a generator as an output.
Graph watched_prediction(const models::Model& model, std::int64_t batch) {
  Graph graph = model.prediction(batch);
  for (const echelon::Node& node : graph.nodes())
    if (node.op->name() == "normal_noise") graph.set_output("noise", node.out[0]);
  return graph;
}

nlohmann::json case_of(const test::SmallNetwork& n, const std::string& folder, int index) {
  const auto model = make_small(n);
  const std::int64_t batch = 4;
  const Graph graph = watched_prediction(*model, batch);
  test::ModelMemory memory({&graph});
  make_restless(memory);
  test::GraphRunner runner(graph, memory);
  nlohmann::json one{{"name", fmt::format("{}#{}", n.model, index)}, {"file", fmt::format("{}.onnx", index)}};
  std::uint32_t layer = 100;
  for (const Graph::Input& input : graph.inputs()) {
    const Type& type = graph.type(input.value);
    const Stream stream({.seed = 9, .step = 1, .shard = 0, .layer = ++layer});
    const auto count = static_cast<std::size_t>(type.elements());
    nlohmann::json data = nlohmann::json::array();
    for (std::size_t i = 0; i < count; ++i) {
      if (type.dtype == DType::i32) {
        const auto most = n.inputs.classes > 0 && input.name == "tokens" ? n.inputs.classes : 3;
        const auto id = static_cast<std::int32_t>(stream.uniform(i) * static_cast<float>(most));
        runner.input<std::int32_t>(input.name)[i] = id;
        data.push_back(id);
      } else {
        const float x = stream.uniform(i) - 0.3f;
        runner.input<float>(input.name)[i] = x;
        data.push_back(x);
      }
    }
    one["inputs"].push_back({{"name", input.name},
                             {"dtype", type.dtype == DType::i32 ? "int32" : "float32"},
                             {"dims", std::vector<std::int64_t>(type.shape.dims().begin(), type.shape.dims().end())},
                             {"data", data}});
  }
  runner.run({.seed = 3});
  for (const auto& [name, value] : graph.outputs()) {
    if (name == "noise")
      one["inputs"].push_back({{"name", name},
                               {"dtype", "float32"},
                               {"dims", std::vector<std::int64_t>(graph.type(value).shape.dims().begin(),
                                                                  graph.type(value).shape.dims().end())},
                               {"data", runner.output(name)}});
    else
      one["outputs"].push_back({{"name", name}, {"data", runner.output(name)}});
  }
  for (const auto& slot : runner.executor().carries()) {
    const auto* x = reinterpret_cast<const float*>(slot.to.data());
    one["outputs"].push_back(
        {{"name", slot.name + ".next"}, {"data", std::vector<float>(x, x + slot.to.size() / sizeof(float))}});
  }
  const Model file = export_model(*model, memory.table, memory.parameters.as<float>(), {.batch = n.batch});
  std::ofstream(folder + "/" + one["file"].get<std::string>(), std::ios::binary) << write(file);
  return one;
}

// Where tools/onnxruntime puts it, if it has been asked to.
std::string onnxruntime_folder() {
  const char *stated = std::getenv("ECHELON_ONNXRUNTIME"), *home = std::getenv("HOME");
  const std::string folder =
      (stated ? std::string(stated) : std::string(home ? home : "") + "/.cache/echelon/onnxruntime") + "/node_modules";
  return std::ifstream(folder + "/onnxruntime-node/package.json") ? folder : "";
}

TEST(OnnxExport, GivesWhatOnnxruntimeGives) {
  const std::string modules = onnxruntime_folder();
  if (modules.empty()) GTEST_SKIP() << "onnxruntime-node is not installed: tools/onnxruntime";
  const test::TempDir folder;
  nlohmann::json cases = nlohmann::json::array();
  int index = 0;
  for (const test::SmallNetwork& n : test::small_networks()) cases.push_back(case_of(n, folder.path(), index++));
  std::ofstream(folder.path("cases.json")) << cases.dump();
  std::istringstream lines(
      test::output_of(fmt::format("node {} {} {}", source_path("tests/onnx/judge.js"), modules, folder.path())));
  std::set<std::string> judged;
  std::string network, output, difference;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    words >> network >> output >> difference;
    judged.insert(network);
    char* end = nullptr;
    const double d = std::strtod(difference.c_str(), &end);
    EXPECT_TRUE(*end == 0 && d <= 1e-5) << line;
  }
  EXPECT_EQ(judged.size(), cases.size());
}

TEST(OnnxExport, JudgesEveryNetworkOfTheZoo) {
  std::set<std::string> small;
  for (const test::SmallNetwork& n : test::small_networks()) small.insert(n.model);
  for (const char* of_graphs : {"gcn", "sage", "gat"})  // not judged yet; graph_network_test.cpp has the papers' sums
    small.insert(of_graphs);
  for (const models::Entry& entry : models::zoo()) EXPECT_TRUE(small.contains(std::string(entry.name))) << entry.name;
}

// The ops of src/graph/ops that no prediction graph has: gradients, losses, what only training or several ranks need.
bool is_never_predicted(const std::string& op) {
  static const std::set<std::string> others = {"batch_norm",
                                               "dropout",
                                               "cross_entropy",
                                               "weighted_cross_entropy",
                                               "quantile",
                                               "mse",
                                               "l1",
                                               "huber",
                                               "bce_with_logits",
                                               "class_scores",
                                               "join_class_scores",
                                               "start_gather",
                                               "finish_gather",
                                               "contribute",
                                               "stop_gradient",
                                               "send",
                                               "receive",
                                               "cached_attention",  // of decoding(): one token at a time
                                               "relayout",
                                               "conv2d_relu",
                                               "linear_relu",  // of passes that run behind export
                                               "unslice",
                                               "row_dots",
                                               "channel_sums",
                                               "over_peak",
                                               "pass_between",  // gradients by other names
                                               "repeat_channels",
                                               "channel_sum",
                                               "channel_squares",
                                               "normalise",
                                               "channel_statistics",  // batch norm in training
                                               "at_offset",
                                               "at_centre",
                                               "recentre",  // HALP's training
                                               "autoflex",
                                               "error_gate",
                                               "round_by_chance",  // training in few bits
                                               "conv2d_grad_weights"};
  return others.contains(op) || op.ends_with("_grad");
}

TEST(OnnxExport, HasARowForEveryOpOfPredictionGraphs) {
  const std::string listing = test::output_of("cat " + source_path("src/graph/ops") + "/*.cpp");
  const std::regex name(R"re(name\(\) const override \{\s*return ([^;]*);)re"), word(R"re("([a-z0-9_]+)")re");
  std::set<std::string> ops;
  for (std::sregex_iterator it(listing.begin(), listing.end(), name), end; it != end; ++it) {
    const std::string names = (*it)[1];
    for (std::sregex_iterator w(names.begin(), names.end(), word); w != end; ++w) ops.insert((*w)[1]);
  }
  EXPECT_GT(ops.size(), 60u);
  for (const std::string& op : ops)
    EXPECT_NE(find_export(op) != nullptr, is_never_predicted(op))
        << op << ": give it a row in src/onnx/export_*.cpp, or say in this test why no prediction has it";
  // Element-wise ops are named by their kernels.
  for (int i = 0; i < kernels::ew_ops; ++i) {
    const std::string op(kernels::name_of(static_cast<kernels::Ew>(i)));
    EXPECT_NE(find_export(op) != nullptr, op.ends_with("_grad")) << op;
  }
}

TEST(OnnxExport, RefusesAnOpenBatchForALayerThatDependsOnIt) {
  const test::SmallNetwork experts{"gpt",
                                   {.inputs = {{"tokens", i32({6})}}, .target = {"targets", i32({6})}, .classes = 17},
                                   "width = 8\nheads = 2\nlayers = 1\nexperts = 4"};
  const auto model = make_small(experts);
  const Graph graph = model->prediction(2);
  test::ModelMemory memory({&graph});
  try {
    export_model(*model, memory.table, memory.parameters.as<float>());
    FAIL() << "the room of an expert depends on the batch";
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("--batch"), std::string::npos) << e.what();
  }
}

TEST(OnnxExport, ReadsBackWhatItWrites) {
  const test::SmallNetwork lenet = test::small_networks()[3];
  const auto model = make_small(lenet);
  const Graph graph = model->prediction(2);
  test::ModelMemory memory({&graph});
  const Model file = export_model(*model, memory.table, memory.parameters.as<float>());
  const std::string bytes = write(file);
  const Model again = read(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(write(again), bytes);
  EXPECT_EQ(again.opset, 17);
  ASSERT_EQ(again.inputs.size(), 1u);
  EXPECT_EQ(again.inputs[0].dims, (std::vector<std::int64_t>{-1, 1, 28, 28}));
  EXPECT_EQ(again.inputs[0].names[0], "batch");
}

}  // namespace
}  // namespace echelon::onnx
