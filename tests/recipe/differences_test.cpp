#include "recipe/differences.h"

#include <gtest/gtest.h>

#include "recipe/toml.h"

namespace echelon {
namespace {

TEST(Differences, NameEveryKeyThatDiffersAndNoOther) {
  const Options a = parse_toml(
      "title = 'a'\n[model]\nname = 'mlp'\nhidden = [9, 8]\n[optim]\nlr = 0.1\n[train]\nbatch = 4\n"
      "[[model.layers]]\nout = 1\n[[model.layers]]\nout = 2\n",
      "a");
  const Options b = parse_toml(
      "title = 'b'\n[train]\nbatch = 4\nshards = 2\n[model]\nname = 'mlp'\nhidden = [9, 7]\n[optim]\n"
      "[[model.layers]]\nout = 1\n[[model.layers]]\nout = 3\n",
      "b");
  std::string text;
  for (const Difference& d : differences(a, b)) text += d.key + " " + d.first + " " + d.second + "\n";
  EXPECT_EQ(text,
            "model.hidden [9, 8] [9, 7]\n"
            "model.layers[1].out 2 3\n"
            "optim.lr 0.1 -\n"
            "train.shards - 2\n");
  EXPECT_TRUE(differences(a, a).empty());
}

// What is shown of a long value is its beginning.
TEST(Differences, AreSeenAtTheEndOfLongTextsAndLists) {
  const std::string long_text(500, 'x');
  std::string many = "1";
  for (int i = 0; i < 200; ++i) many += ", 1";
  const auto recipe = [&](const std::string& end) {
    return parse_toml("[exchange]\nedges = '" + long_text + end + "'\n[data]\nlist = [" + many + ", " + end + "]\n",
                      "r");
  };
  const auto found = differences(recipe("1"), recipe("2"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, "data.list");
  EXPECT_EQ(found[1].key, "exchange.edges");
  EXPECT_LT(found[1].first.size(), 100u);
}

}  // namespace
}  // namespace echelon
