// The parts as recipe/system_parts.h describes them are the parts that parallel/ and codec/ have: every name, and every
// setting of each with its default.
#include "recipe/system_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "parallel/composition.h"
#include "recipe/toml.h"

namespace echelon {
namespace {

std::vector<std::string> names_in_code(const std::string& axis) {
  if (axis == "rule") return merge_rule_names();
  if (axis == "exchange") return exchange_names();
  if (axis == "sync") return sync_names();
  if (axis == "order") return order_names();
  return codec_names();
}

Problems problems_of(const std::string& axis, const Options& table) {
  Problems problems;
  const Options empty;
  const auto of = [&](const char* which) -> const Options& { return axis == which ? table : empty; };
  read_composition({"", of("rule"), of("exchange"), of("sync"), of("codec"), of("order")}, problems);
  return problems;
}

Options table_of(const std::string& axis, const std::string& part, const std::string& key) {
  Options table;
  table.where = axis;
  table.items["name"] = {part};
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
          {"graph", {std::string("file")}},
          {"edges", {std::string("0 1")}},
          {"filters", both}};
}

// Whether the code knows the key, alone or beside a setting that others come with.
bool is_read(const std::string& axis, const std::string& part, const std::string& key) {
  if (axis == "exchange" && key == "file") return true;  // by who loads the recipe, and it becomes edges
  for (const auto& [enabler, value] : enablers(part)) {
    Options table = table_of(axis, part, key);
    table.items[enabler] = value;
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
    table.items["name"] = {part};
    table.items[enabler] = value;
    if (enabler == "edges") table.items["graph"] = {std::string("file")};
    Problems problems;  // enablers that the part does not know
    OptionReader reader(table, problems), period(table, problems);
    if (axis == "rule") read_rule(reader);
    if (axis == "exchange") read_exchange(reader), read_period(period);
    if (axis == "sync") read_sync(reader);
    if (axis == "order") read_order(reader, Order::Kind::backward);
    if (axis == "codec" && part == "auto") read_codec_choice(reader);
    if (axis == "codec" && part != "auto") read_codec(reader);
    for (const OptionReader* r : {&reader, &period})
      for (const auto& [key, fallback] : r->asked())
        if (fallback) found.try_emplace(key, *fallback);
  }
  return found;
}

class SystemParts : public testing::TestWithParam<std::string> {};

TEST_P(SystemParts, AreTheOnesOfTheCode) {
  const std::string axis = GetParam();
  std::set<std::string> described;
  for (const Part& part : system_axis(axis).parts) described.insert(part.name);
  for (const std::string& name : names_in_code(axis)) EXPECT_TRUE(described.contains(name)) << name;
  EXPECT_TRUE(described.contains(system_axis(axis).usual));
}

TEST_P(SystemParts, HaveTheSettingsOfTheCode) {
  const std::string axis = GetParam();
  for (const std::string& name : names_in_code(axis)) {
    SCOPED_TRACE(axis + " " + name);
    const Part* part = find_part(axis, name);
    if (!part) continue;  // the other test says so
    std::set<std::string> described;
    for (const Knob& knob : part->knobs) described.insert(knob.key);
    std::set<std::string> keys = keys_in_code(axis, name);
    if (name == "none") keys.clear();  // wrappers have nothing to do there, and it says so
    for (const std::string& key : keys) EXPECT_TRUE(described.contains(key)) << key << " is not described";
    for (const std::string& key : described) EXPECT_TRUE(is_read(axis, name, key)) << "nobody reads " << key;
  }
}

TEST_P(SystemParts, HaveTheDefaultsOfTheCode) {
  const std::string axis = GetParam();
  // Said in words: they depend on the number of workers, on other settings or on the recipe.
  const std::set<std::string> derived{"rule grad_push optim", "rule sma alpha", "rule elastic alpha",
                                      "exchange elastic_tree tau_down", "exchange nested outer"};
  for (const Part& part : system_axis(axis).parts) {
    const auto defaults = defaults_in_code(axis, part.name);
    for (const Knob& knob : part.knobs) {
      const std::string what = axis + " " + part.name + " " + knob.key;
      if (derived.contains(what) || what == "exchange neighbour file") continue;
      ASSERT_TRUE(defaults.contains(knob.key)) << what;
      const Options said = parse_toml("it = " + knob.usual, what);
      EXPECT_EQ(to_text(said.items.at("it")), to_text(defaults.at(knob.key))) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Axes, SystemParts, testing::Values("rule", "exchange", "sync", "codec", "order"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
