// Text from a language model: drawing, the cache, stop words.
#include "cli/answers/sample_tokens.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"

namespace echelon::cli {
namespace {

TEST(DrawToken, FollowsTemperatureTopKAndTopP) {
  const std::vector<float> scores{std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  EXPECT_EQ(draw_token(scores, {.temperature = 0}, 0.99f), 1);
  auto shares = [&](const Drawing& d) {
    std::vector<double> share(4);
    for (int i = 0; i < 1000; ++i)
      share[static_cast<std::size_t>(draw_token(scores, d, (static_cast<float>(i) + 0.5f) / 1000))] += 0.001;
    return share;
  };
  const auto expect = [](const std::vector<double>& found, const std::vector<double>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 2e-3) << i;
  };
  expect(shares({.temperature = 1}), {0.1, 0.4, 0.2, 0.3});
  expect(shares({.temperature = 1, .top_k = 2}), {0, 4.0 / 7, 0, 3.0 / 7});
  expect(shares({.temperature = 1, .top_p = 0.65}), {0, 4.0 / 7, 0, 3.0 / 7});
  expect(shares({.temperature = 1, .top_p = 0.75}), {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
  expect(shares({.temperature = 1, .top_p = 0}), {0, 1, 0, 0});
  expect(shares({.temperature = 0.5}), {0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3});
}

// The window slides several times while this is written.
TEST(TokenScorer, ACacheChangesNothingOfTheText) {
  const models::InputSpec text{.inputs = {{"tokens", i32({8})}}, .target = {"targets", i32({8})}, .classes = 13};
  const auto model = models::make_model("gpt", text, parse_toml("width = 16\nheads = 2\nlayers = 2", "test"));
  const Graph whole = model->prediction(1);
  test::ModelMemory memory({&whole}, 3);
  for (float& v : memory.parameters.as<float>()) v *= 6;  // far from uniform
  auto write = [&](bool cache, std::uint64_t seed) {
    TokenScorer scorer(*model, memory.table, memory.parameters.as<float>(), cache);
    EXPECT_EQ(scorer.cached(), cache);
    std::vector<std::int32_t> tokens{1, 5};
    const Stream random({.seed = seed});
    for (std::uint64_t i = 0; i < 40; ++i)
      tokens.push_back(draw_token(scorer.next(tokens), {.temperature = 1}, random.uniform(i)));
    return tokens;
  };
  for (std::uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(write(true, seed), write(false, seed));
  }
  EXPECT_NE(write(true, 1), write(true, 2));
}

TEST(TokenScorer, RestartsWithAnEmptyState) {
  const models::InputSpec text{.inputs = {{"tokens", i32({8})}}, .target = {"targets", i32({8})}, .classes = 13};
  for (const char* name : {"gpt", "char_gru"}) {
    const auto model = models::make_model(
        name, text,
        parse_toml(name == std::string("gpt") ? "width = 16\nheads = 2\nlayers = 1" : "hidden = 8", "test"));
    const Graph whole = model->prediction(1);
    test::ModelMemory memory({&whole});
    TokenScorer scorer(*model, memory.table, memory.parameters.as<float>(), true);
    const std::vector<std::int32_t> first{1, 5, 7}, second{2};
    auto scores = [&](const std::vector<std::int32_t>& tokens) {
      const auto s = scorer.next(tokens);
      return std::vector<float>(s.begin(), s.end());
    };
    const auto alone = scores(second);
    scorer.restart();
    scores(first);
    scorer.restart();
    EXPECT_EQ(scores(second), alone) << name;
  }
}

TEST(TextStream, PrintsWhatIsSettledAndStopsBeforeAStopWord) {
  std::vector<std::string> printed;
  TextStream stream({"end", "\n\n"}, [&](std::string_view part) { printed.emplace_back(part); });
  EXPECT_TRUE(stream.write("a"));
  EXPECT_TRUE(stream.write("\xC3"));
  EXPECT_TRUE(stream.write("\xA4 e"));
  EXPECT_TRUE(stream.write("n"));
  EXPECT_TRUE(stream.write("ough\n"));
  EXPECT_TRUE(stream.write("the e"));
  EXPECT_FALSE(stream.write("nd of it"));
  stream.finish();
  EXPECT_EQ(stream.text(), "a\xC3\xA4 enough\nthe ");
  EXPECT_EQ(printed, (std::vector<std::string>{"a", "\xC3\xA4 ", "enough", "\nthe "}));
  TextStream cut({"x"}, [&](std::string_view part) { printed.emplace_back(part); });
  printed.clear();
  cut.write("\xC3");
  EXPECT_TRUE(printed.empty());
  cut.finish();
  EXPECT_EQ(printed, (std::vector<std::string>{"\xC3"}));
}

}  // namespace
}  // namespace echelon::cli
