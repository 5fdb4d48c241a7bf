// The rows of the parts say what their makers read: every setting, with its default.
#include "parallel/axes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "parallel/composition.h"
#include "recipe/toml.h"

namespace echelon {
namespace {

Problems problems_of(const std::string& axis, const Options& table) {
  Problems problems;
  const Options empty;
  const auto of = [&](const char* which) -> const Options& { return axis == which ? table : empty; };
  read_composition({"", of("rule"), of("exchange"), of("when"), of("sync"), of("codec"), of("order")}, problems);
  return problems;
}

Options table_of(const std::string& axis, const std::string& part, const std::string& key) {
  Options table;
  table.where = axis;
  if (axis != "when") table.items["name"] = {part};
  table.items[key] = {true};
  return table;
}

// The keys that the code asks for: it lists them when it meets one that it does not know.
std::set<std::string> keys_in_code(const std::string& axis, const std::string& part) {
  const Problems problems = problems_of(axis, table_of(axis, part, "qqqqqqqqqqqqqqqq"));
  for (const auto& p : problems.list()) {
    const std::string start = "unknown key " + axis + ".qqqqqqqqqqqqqqqq; known here: ";
    if (!p.text.starts_with(start)) continue;
    std::set<std::string> keys;
    for (std::string_view key : split(std::string_view(p.text).substr(start.size()), ','))
      keys.emplace(key.starts_with(' ') ? key.substr(1) : key);
    keys.erase("name");
    return keys;
  }
  ADD_FAILURE() << axis << " " << part << " accepts any key";
  return {};
}

// Settings that others come with, and the part's name, beside which most are read.
std::vector<std::pair<std::string, Option>> enablers(const std::string& part) {
  const Option both = {Option::List{{std::string("significant")}, {std::string("skip")}}};
  return {{"name", {part}},
          {"momentum", {0.5}},
          {"algorithm", {std::string("auto")}},
          {"algorithm", {std::string("sparse")}},
          {"algorithm", {std::string("nested_butterfly")}},
          {"graph", {std::string("file")}},
          {"edges", {std::string("0 1")}},
          {"filters", both}};
}

// Whether the code knows the key, alone or beside a setting that others come with.
bool is_read(const std::string& axis, const std::string& part, const std::string& key) {
  if (axis == "exchange" && key == "file") return true;  // by who loads the recipe, and it becomes edges
  for (const auto& [enabler, value] : enablers(part)) {
    Options table = table_of(axis, part, key);
    if (axis != "when") table.items[enabler] = value;
    const std::string complaint = "unknown key " + axis + "." + key + ";";
    const Problems problems = problems_of(axis, table);
    if (std::ranges::none_of(problems.list(), [&](const auto& p) { return p.text.starts_with(complaint); }))
      return true;
  }
  return false;
}

// What the code takes for each key where the table says nothing, if that is one value.
std::map<std::string, Option> defaults_in_code(const std::string& axis, const std::string& part) {
  std::map<std::string, Option> found;
  for (const auto& [enabler, value] : enablers(part)) {
    Options table;
    table.where = axis;
    if (axis != "when") table.items["name"] = {part};
    if (axis != "when" || enabler != "name") table.items[enabler] = value;
    if (enabler == "edges") table.items["graph"] = {std::string("file")};
    Problems problems;  // enablers that the part does not know
    OptionReader reader(table, problems);
    if (axis == "rule") read_rule(reader);
    if (axis == "exchange") read_exchange(reader);
    if (axis == "when") read_when(reader);
    if (axis == "sync") read_sync(reader);
    if (axis == "order") read_order(reader, "backward");
    if (axis == "codec" && part == "auto") read_codec_choice(reader);
    if (axis == "codec" && part != "auto") read_codec(reader);
    for (const auto& [key, fallback] : reader.asked())
      if (fallback) found.try_emplace(key, *fallback);
  }
  return found;
}

class SystemParts : public testing::TestWithParam<std::string> {};

TEST_P(SystemParts, HaveOneNameEachAndAUsualOne) {
  const Axis& axis = composition_axis(GetParam());
  std::set<std::string> names;
  for (const PartInfo& part : axis.parts) EXPECT_TRUE(names.insert(part.name).second) << part.name;
  EXPECT_TRUE(names.contains(axis.usual));
}

TEST_P(SystemParts, HaveTheSettingsOfTheCode) {
  const std::string axis = GetParam();
  for (const PartInfo& part : composition_axis(axis).parts) {
    SCOPED_TRACE(axis + " " + part.name);
    std::set<std::string> described;
    for (const Setting& setting : part.settings) described.insert(setting.name);
    std::set<std::string> keys = keys_in_code(axis, part.name);
    if (part.name == "none") keys.clear();  // wrappers have nothing to do there, and it says so
    for (const std::string& key : keys) EXPECT_TRUE(described.contains(key)) << key << " is not described";
    for (const std::string& key : described) EXPECT_TRUE(is_read(axis, part.name, key)) << "nobody reads " << key;
  }
}

TEST_P(SystemParts, HaveTheDefaultsOfTheCode) {
  const std::string axis = GetParam();
  // Said in words: they depend on the number of workers, on other settings or on the recipe.
  const std::set<std::string> derived{"rule grad_push optim", "rule sma alpha", "rule elastic alpha",
                                      "when when tau_down", "exchange nested outer"};
  for (const PartInfo& part : composition_axis(axis).parts) {
    const auto defaults = defaults_in_code(axis, part.name);
    for (const Setting& setting : part.settings) {
      const std::string what = axis + " " + part.name + " " + setting.name;
      if (derived.contains(what) || what == "exchange neighbour file") continue;
      ASSERT_TRUE(defaults.contains(setting.name)) << what;
      const Options said = parse_toml("it = " + setting.usual, what);
      EXPECT_EQ(to_text(said.items.at("it")), to_text(defaults.at(setting.name))) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Axes, SystemParts, testing::Values("rule", "exchange", "when", "sync", "codec", "order"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
