// The parts as recipe/system_parts.h describes them are the parts that parallel/ and codec/ have: every name, and every
// setting of each.
#include "recipe/system_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "parallel/composition.h"

namespace echelon {
namespace {

std::vector<std::string> names_in_code(const std::string& axis) {
  if (axis == "rule") return merge_rule_names();
  if (axis == "exchange") return exchange_names();
  if (axis == "sync") return sync_names();
  if (axis == "order") return order_names();
  std::vector<std::string> names;
  for (const CodecInfo& c : codec_table()) names.push_back(c.name);
  return names;
}

// The keys that the code asks for: it lists them when it meets one that it does not know.
std::set<std::string> keys_in_code(const std::string& axis, const Part& part) {
  Options table;
  table.where = axis;
  table.items["name"] = {part.name};
  if (axis == "codec" && std::ranges::find(part.knobs, "momentum", &Knob::key) != part.knobs.end())
    table.items["momentum"] = {0.5};  // some settings come with it
  table.items["qqqqqqqqqqqqqqqq"] = {true};
  Problems problems;
  const Options empty;
  const auto of = [&](const char* which) -> const Options& { return axis == which ? table : empty; };
  read_composition({"", of("rule"), of("exchange"), of("sync"), of("codec"), of("order")}, problems);
  for (const auto& p : problems.list()) {
    const std::string start = "unknown key " + axis + ".qqqqqqqqqqqqqqqq; known here: ";
    if (!p.text.starts_with(start)) continue;
    std::set<std::string> keys;
    for (std::string_view key : split(std::string_view(p.text).substr(start.size()), ','))
      keys.emplace(key.starts_with(' ') ? key.substr(1) : key);
    keys.erase("name");
    return keys;
  }
  ADD_FAILURE() << axis << " " << part.name << " accepts any key";
  return {};
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
    const std::set<std::string> keys = keys_in_code(axis, *part);
    if (name != "none")  // wrappers have nothing to do there, and it says so
      for (const std::string& key : keys) EXPECT_TRUE(described.contains(key)) << key << " is not described";
    for (const std::string& key : described) EXPECT_TRUE(keys.contains(key)) << "nobody reads " << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Axes, SystemParts, testing::Values("rule", "exchange", "sync", "codec", "order"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
