// Weights of networks in slices as those of the network without slices: the same answers, and back to the same bits.
#include "onnx/whole_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "models/wrappers/sliced.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"

namespace echelon::onnx {
namespace {

struct SlicedNetwork {
  const char *name, *options, *slicing;
  models::InputSpec inputs;
};

std::vector<SlicedNetwork> sliced_networks() {
  const models::InputSpec pictures{.inputs = {{"image", f32({3, 16, 16})}}, .target = {"label", i32({})}, .classes = 5};
  const models::InputSpec text{.inputs = {{"tokens", i32({6})}}, .target = {"targets", i32({6})}, .classes = 11};
  const models::InputSpec rows{.inputs = {{"x", f32({8, 6})}}, .target = {"label", i32({})}, .classes = 4};
  const char* convolutions =
      "layers = [{type=\"conv2d\", out=8, padding=1}, {type=\"batch_norm\"}, {type=\"relu\"}, {type=\"conv2d\", "
      "out=12}, "
      "{type=\"depthwise\"}, {type=\"flatten\"}, {type=\"linear\", out=16}, {type=\"relu\"}, {type=\"linear\", out=5}]";
  return {
      {"gpt", "width = 16\nheads = 4\nlayers = 2", "slices = 4", text},  // 11 tokens: parts differ by one
      {"gpt", "width = 16\nheads = 2\nlayers = 1\ntied = true", "slices = 2", text},
      {"layers", convolutions, "slices = 4", pictures},
      {"layers", convolutions, "slices = 2\nslice_images = \"strips\"", pictures},
      {"layers", convolutions, "slices = 4\nslice_linear = \"grid\"", pictures},
      {"layers",
       "layers = [{type=\"lstm\", hidden=8, bidirectional=true}, {type=\"gru\", hidden=4}, {type=\"moe\", experts=4, "
       "hidden=8}, {type=\"flatten\"}, {type=\"linear\", out=4}]",
       "slices = 2", rows},
  };
}

std::unique_ptr<models::Model> make(const SlicedNetwork& n, const std::string& slicing) {
  return models::make_model(n.name, n.inputs, parse_toml(fmt::format("{}\n{}", n.options, slicing), "test"));
}

std::vector<NamedWeights> weights_of(const test::ModelMemory& memory) {
  std::vector<NamedWeights> all;
  for (const auto& e : memory.table.entries()) {
    const auto numbers = memory.parameters.as<float>().subspan(e.offset, e.size);
    all.push_back({e.parameter.name, e.parameter.shape, {numbers.begin(), numbers.end()}});
  }
  return all;
}

std::vector<float> answer(const Graph& graph, test::ModelMemory& memory, const SlicedNetwork& n) {
  test::GraphRunner runner(graph, memory);
  for (const auto& input : graph.inputs()) {
    const Stream s({.seed = 4, .layer = stream_layer(input.name.c_str())});
    const auto count = static_cast<std::size_t>(graph.type(input.value).elements());
    for (std::size_t i = 0; i < count; ++i)
      if (graph.type(input.value).dtype == DType::i32)
        runner.input<std::int32_t>(input.name)[i] =
            static_cast<std::int32_t>(s.bits(i) % static_cast<std::uint32_t>(n.inputs.classes));
      else
        runner.input<float>(input.name)[i] = s.uniform(i) - 0.5f;
  }
  runner.run({.seed = 3});
  return runner.output("logits");
}

TEST(WholeWeights, JoinedSlicesAreTheNetworkWithoutSlices) {
  for (const SlicedNetwork& n : sliced_networks()) {
    SCOPED_TRACE(fmt::format("{} {}", n.name, n.slicing));
    const auto in_slices = make(n, n.slicing), whole = make(n, "");
    const Graph cut = in_slices->prediction(2), uncut = whole->prediction(2);
    test::ModelMemory memory({&cut}), other({&uncut}, 7);
    const auto slices = models::sliced_parameters(*in_slices);
    ASSERT_FALSE(slices.empty());
    const std::vector<NamedWeights> before = weights_of(memory), joined = join_slices(before, slices);
    ASSERT_EQ(joined.size(), other.table.entries().size());
    for (const NamedWeights& w : joined) {
      ASSERT_EQ(w.shape, other.table.find(w.name).parameter.shape) << w.name;
      std::ranges::copy(w.numbers, other.parameter(w.name).begin());
    }
    const std::vector<float> expected = answer(cut, memory, n), got = answer(uncut, other, n);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;

    for (const NamedWeights& part : cut_into_slices(joined, slices)) {
      const auto was = std::ranges::find(before, part.name, &NamedWeights::name);
      ASSERT_NE(was, before.end()) << part.name;
      EXPECT_EQ(part.shape, was->shape) << part.name;
      EXPECT_EQ(part.numbers, was->numbers) << part.name;
    }
  }
}

TEST(WholeWeights, ANetworkWithoutSlicesIsLeftAsItIs) {
  const SlicedNetwork n = sliced_networks().front();
  EXPECT_TRUE(models::sliced_parameters(*make(n, "")).empty());
  const std::vector<NamedWeights> weights{{"a.weight", {2}, {1, 2}}};
  EXPECT_EQ(join_slices(weights, {})[0].numbers, weights[0].numbers);
  EXPECT_EQ(cut_into_slices(weights, {})[0].numbers, weights[0].numbers);
}

}  // namespace
}  // namespace echelon::onnx
