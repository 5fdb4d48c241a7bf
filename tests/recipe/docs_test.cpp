// What can be written in a recipe is described: docs/recipes.md names every update rule, schedule, kind of layer and
// way to quantise.
#include <gtest/gtest.h>

#include "models/quantised.h"
#include "nn/layer_table.h"
#include "optim/rule.h"
#include "optim/schedule.h"
#include "world/os/disk.h"

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

std::string source_file(const std::string& path) { return read_text(*make_real_disk(), ECHELON_SOURCE_DIR "/" + path); }

// The line of a file that has `word` in it, without its indentation.
std::string line_with(const std::string& path, const std::string& word) {
  const std::string text = source_file(path);
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return path + " has no line with " + word;
  const std::size_t begin = text.find_first_not_of(" \n", text.rfind('\n', at));
  return text.substr(begin, text.find('\n', at) - begin);
}

// docs/adding-a-system.md shows the files as they are.
TEST(AddingASystem, ShowsWhatIsThere) {
  const std::string page = source_file("docs/adding-a-system.md");
  for (const char* file : {"src/parallel/rules/sign_majority.cpp", "recipes/systems/signsgd_majority.toml"})
    EXPECT_NE(page.find("\n" + source_file(file) + "```\n"), std::string::npos) << file << " reads differently now";
  for (const char* file : {"src/parallel/rules.cpp", "src/parallel/rules/rules.h", "src/recipe/system_parts.cpp"})
    EXPECT_NE(page.find(line_with(file, "sign_majority")), std::string::npos) << line_with(file, "sign_majority");
  for (const auto& [word, file] : std::initializer_list<std::pair<const char*, const char*>>{
           {"CountsHeadsAndNotSizes", "tests/parallel/averaging_test.cpp"},
           {"void check_composition", "src/parallel/composition_check.cpp"},
           {"tools/systems_page", "tests/CMakeLists.txt"},
           {"one_bit(OptionReader&)", "src/codec/codecs.h"},
           {"all_reduce(OptionReader&", "src/parallel/exchanges/exchanges.h"},
           {"order.is_early", "src/parallel/exchanges/buckets.cpp"},
           {"Order::Kind", "src/parallel/exchanges/server_overlap.cpp"},
           {"order.cuts_slices", "src/parallel/exchanges/server_keys.cpp"},
           {"Sync::Kind", "src/parallel/exchanges/server_client.cpp"},
           {"Sync::Kind", "src/parallel/exchanges/server_shard_rounds.cpp"},
           {"Sync::Kind", "src/parallel/exchanges/server_shard.cpp"}})
    EXPECT_NE(source_file(file).find(word), std::string::npos) << file << " has no " << word;
}

}  // namespace
}  // namespace echelon
