// What can be written in a recipe is described: docs/recipes.md names every update rule, schedule, kind of layer, loss,
// metric and way to quantise.
#include <gtest/gtest.h>

#include "base/text.h"
#include "models/loss.h"
#include "models/wrappers/quantised.h"
#include "nn/layer_table.h"
#include "optim/rule.h"
#include "optim/schedule.h"
#include "parallel/axes.h"
#include "parallel/metrics/metric.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

using test::says;

TEST(RecipeDocs, NameEverything) {
  const std::string text = read_text(*make_real_disk(), source_path("docs/recipes.md"));
  std::vector<std::string> words = rule_names();
  for (const std::string& name : schedule_names()) words.push_back(name);
  for (const nn::LayerKind& kind : nn::layer_table()) words.emplace_back(kind.name);
  for (const std::string& name : models::quantisation_schemes()) words.push_back(name);
  for (const std::string& name : models::loss_names()) words.push_back(name);
  for (const models::Task task : {models::Task::classify, models::Task::regress, models::Task::language})
    for (const std::string& name : metric_names(task))
      if (name != "loss" && metric_named(name)->over == Metric::Over::all) words.push_back(name);
  for (const std::string& word : words) EXPECT_NE(text.find("`" + word + "`"), std::string::npos) << word;
}

std::string source_file(const std::string& path) { return read_text(*make_real_disk(), source_path(path)); }

// docs/adding-a-system.md shows the files as they are, and every part on it is one file and its line in one table.
struct AddedPart {
  const char *axis, *name;
  const char* file;         // shown whole
  const char* table;        // lists name()
  const char* header;       // declares it
  const char* declaration;  // as the page quotes it
};
const AddedPart added[]{
    {"rule", "sign_majority", "src/parallel/rules/sign_majority.cpp", "src/parallel/rules.cpp",
     "src/parallel/rules/rules.h", "RulePart sign_majority();"},
    {"codec", "dorefa", "src/codec/codecs/dorefa.cpp", "src/codec/codecs.cpp", "src/codec/codecs.h",
     "CodecPart dorefa();"},
    {"sync", "essp", "src/parallel/syncs/essp.cpp", "src/parallel/syncs.cpp", "src/parallel/syncs/syncs.h",
     "SyncPart essp();"},
    {"exchange", "random_peer", "src/parallel/exchanges/random_peer.cpp", "src/parallel/exchanges.cpp",
     "src/parallel/exchanges/exchanges.h", "ExchangePart random_peer();"},
};

TEST(AddingASystem, ShowsWhatIsThere) {
  const std::string page = source_file("docs/adding-a-system.md");
  const auto is_shown = [&](const std::string& file) {
    EXPECT_NE(page.find("\n" + source_file(file) + "```\n"), std::string::npos) << file << " reads differently now";
  };
  is_shown("recipes/systems/signsgd_majority.toml");
  for (const AddedPart& part : added) {
    SCOPED_TRACE(part.name);
    is_shown(part.file);
    for (const char* file : {part.file, part.table, part.header}) EXPECT_TRUE(says(page, file));
    EXPECT_TRUE(says(source_file(part.table), std::string(part.name) + "()"));
    EXPECT_TRUE(says(source_file(part.header), part.declaration));
    EXPECT_TRUE(says(page, std::string("\n") + part.declaration + "\n"));
  }
  for (const auto& [word, file] : std::initializer_list<std::pair<const char*, const char*>>{
           {"CountsHeadsAndNotSizes", "tests/parallel/averaging_test.cpp"},
           {"tools/systems_page", "tests/CMakeLists.txt"},
           {"order.is_early", "src/parallel/exchanges/bucket_sums.cpp"}})
    EXPECT_TRUE(says(source_file(file), word)) << file;
}

// What the page says of an order stands in its file, line by line.
TEST(AddingASystem, QuotesTheOrderAsItIs) {
  const std::string page = source_file("docs/adding-a-system.md"), file = source_file("src/parallel/order.cpp");
  const std::size_t begin = page.find("Order make_fusion"), end = page.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  for (std::string_view line : split(std::string_view(page).substr(begin, end - begin), '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    EXPECT_TRUE(says(file, std::string(line)));
  }
}

// Every added part can be named, and its settings are those of its row.
TEST(AddingASystem, AddsWhatASystemCanName) {
  for (const AddedPart& part : added) {
    SCOPED_TRACE(part.name);
    const Axis& axis = composition_axis(part.axis);
    ASSERT_TRUE(find_row(axis.parts, part.name));
    Options table{.items = {{"name", {std::string(part.name)}}}, .where = part.axis};
    Problems problems;
    OptionReader reader(table, problems);
    check_part(axis, reader);
    EXPECT_TRUE(problems.empty()) << problems.text("");
  }
}

}  // namespace
}  // namespace echelon
