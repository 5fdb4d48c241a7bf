// What can be written in a recipe is described: docs/recipes.md names every update rule, schedule, kind of layer and
// way to quantise.
#include <gtest/gtest.h>

#include "models/quantised.h"
#include "nn/layer_table.h"
#include "optim/rule.h"
#include "optim/schedule.h"
#include "world/disk.h"

namespace echelon {
namespace {

TEST(RecipeDocs, NameEverything) {
  const std::string text = read_text(*make_real_disk(), ECHELON_SOURCE_DIR "/docs/recipes.md");
  std::vector<std::string> words = rule_names();
  for (const std::string& name : schedule_names()) words.push_back(name);
  for (const nn::LayerKind& kind : nn::layer_table()) words.emplace_back(kind.name);
  for (const std::string& name : models::quantisation_schemes()) words.push_back(name);
  for (const std::string& word : words) EXPECT_NE(text.find("`" + word + "`"), std::string::npos) << word;
}

}  // namespace
}  // namespace echelon
