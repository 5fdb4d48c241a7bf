// What a training would need is found before it starts.
#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

std::string problems_of(const std::string& text) {
  const auto disk = make_real_disk();
  Problems problems;
  try {
    Recipe recipe = read_recipe("r.toml", {parse_toml(text, "r.toml"), {}, {}}, problems);
    prepare_run(*disk, std::move(recipe), problems, {.root = "nowhere", .share = {source_path("share")}});
  } catch (const BadInput& e) {
    problems.add({}, e.what());
  }
  return problems.text("r.toml");
}

std::string recipe(const std::string& model, const std::string& data, const std::string& train) {
  return "[model]\n" + model + "\n[data]\nkind = 'synthetic'\n" + data + "\n[train]\n" + train + "\n";
}

TEST(Memory, ABatchThatDoesNotFitIsRefusedWithBothAmounts) {
  const std::string text = problems_of(recipe("name = 'mlp'\nhidden = [65536]", "shape = [16]\nsamples = 16777216",
                                              "steps = 1\nbatch = 16777216\nshards = 1"));
  EXPECT_TRUE(test::says(text, "r.toml:10: train.batch = 16777216: a training step needs "));
  EXPECT_TRUE(test::says(text, "TiB of memory, and this machine has "));
  EXPECT_TRUE(test::says(text, "train.batch or the model smaller"));
}

TEST(Memory, AModelThatDoesNotFitIsRefused) {
  EXPECT_TRUE(test::says(problems_of(recipe("name = 'mlp'\nhidden = [1048576, 1048576]", "shape = [16]", "steps = 1")),
                         "model mlp needs 8.0 TiB of memory for its weights and their gradients"));
  EXPECT_TRUE(test::says(
      problems_of(recipe("name = 'gpt'\nwidth = 65536\nlayers = 200", "make = 'tokens'\nshape = [64]", "steps = 1")),
      "make the model smaller"));
}

TEST(Memory, ATensorThatNoMachineHoldsIsRefusedByItsLayer) {
  std::string layers;
  for (int i = 0; i < 3; ++i) layers += "[[model.layers]]\ntype = 'upsample'\nfactor = 256\n";
  EXPECT_TRUE(test::says(problems_of(recipe("name = 'layers'\n" + layers, "make = 'images'", "steps = 1")),
                         "a tensor has at most"));
}

TEST(Memory, WhatFitsIsNotMentioned) {
  EXPECT_EQ(problems_of(recipe("name = 'lenet5'", "make = 'images'", "steps = 1")), "");
}

TEST(Memory, MoreStepsThanCanBeCountedAreRefused) {
  EXPECT_TRUE(test::says(problems_of(recipe("name = 'mlp'", "samples = 1000000000000", "epochs = 1000000000")),
                         "train.epochs = 1000000000 makes more than"));
  EXPECT_EQ(problems_of(recipe("name = 'mlp'", "samples = 1000", "epochs = 1000000")), "");
}

}  // namespace
}  // namespace echelon
