// Networks for text that a recipe writes out may not look at what they are to predict.
#include <gtest/gtest.h>

#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/says.h"

namespace echelon::models {
namespace {

using test::says;

std::string problems_of_text_network(const std::string& layers) {
  const InputSpec text{.inputs = {{"tokens", i32({7})}}, .target = {"targets", i32({7})}, .classes = 11};
  const Options options = parse_toml(
      "layers = [\n{ type = 'embedding', rows = 11, width = 6 },\n" + layers + "\n{ type = 'linear', out = 11 }]",
      "r.toml");
  Problems problems;
  OptionReader reader(options, problems);
  const auto model = make_model("layers", reader, text);
  EXPECT_EQ(model == nullptr, !problems.empty());
  return problems.text("r.toml");
}

TEST(Causality, LayersThatReadWhatComesBeforeAreTaken) {
  for (const char* layers :
       {"", "{ type = 'lstm', hidden = 4 },", "{ type = 'gru', hidden = 4, layers = 2 },", "{ type = 'layer_norm' },",
        "{ type = 'attention', heads = 2, causal = true },",
        "{ type = 'block', repeat = 2, residual = true, layers = [{ type = 'attention', causal = true }] },"})
    EXPECT_EQ(problems_of_text_network(layers), "") << layers;
}

TEST(Causality, ALayerThatReadsWhatComesAfterIsRefusedWhereItStands) {
  for (const char* layer :
       {"{ type = 'lstm', hidden = 4, bidirectional = true },", "{ type = 'attention', heads = 2 },",
        "{ type = 'block', layers = [{ type = 'rnn', hidden = 3, bidirectional = true }] },"}) {
    const std::string problems = problems_of_text_network(std::string("{ type = 'gru', hidden = 6 },\n") + layer);
    EXPECT_TRUE(says(problems, "r.toml:4: behind this layer a position sees tokens that come after it")) << problems;
    EXPECT_TRUE(says(problems, "bidirectional = false"));
  }
}

// A mistake in a size: 280 GB of weights are counted and refused elsewhere, but nothing of that size is run here.
TEST(Causality, ALargeNetworkIsNotRun) {
  EXPECT_EQ(problems_of_text_network("{ type = 'linear', out = 10000000 },\n{ type = 'lstm', hidden = 1750, "
                                     "bidirectional = true },"),
            "");
}

TEST(Causality, ANetworkThatDoesNotFitIsSaidToNotFit) {
  const std::string problems = problems_of_text_network("{ type = 'conv2d', out = 3 },");
  EXPECT_TRUE(says(problems, "conv")) << problems;
  EXPECT_FALSE(says(problems, "sees tokens"));
}

}  // namespace
}  // namespace echelon::models
