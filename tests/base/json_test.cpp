#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace echelon {
namespace {

std::string complaint(std::string_view text, JsonLimits limits = {}) {
  try {
    parse_json(text, "file.json", limits);
    return "";
  } catch (const BadInput& e) {
    return e.what();
  }
}

TEST(Json, ReadsWhatIsJson) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2.5, "x", null, true, {}]})", "t")["a"].size(), 6u);
  EXPECT_EQ(parse_json(R"({"seed": 18446744073709551615})", "t")["seed"].get<std::uint64_t>(), ~0ull);
  EXPECT_EQ(complaint(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}}])"), "");  // the same key in different objects
}

TEST(Json, RefusesWhatIsNot) {
  EXPECT_NE(complaint(R"({"a": 1)").find("file.json: byte 8"), std::string::npos) << complaint(R"({"a": 1)");
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint("1e999"), "");
  EXPECT_NE(complaint("\"\xff\""), "");
  EXPECT_NE(complaint("{} x"), "");
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_NE(complaint(R"({"a": 1, "b": 2, "a": 3})").find("\"a\" occurs twice"), std::string::npos);
  EXPECT_NE(complaint(R"({"o": {"x": {}, "x": {}}})").find("\"x\" occurs twice"), std::string::npos);
}

TEST(Json, RefusesDepthAndCountBeforeTheyHurt) {
  EXPECT_NE(complaint(std::string(1'000'000, '[')).find("deeper than 32"), std::string::npos);
  EXPECT_EQ(complaint("[[[]]]", {.depth = 3}), "");
  EXPECT_NE(complaint("[[[[]]]]", {.depth = 3}), "");
  EXPECT_NE(complaint("[1,2,3,4,5]", {.values = 4}).find("more than 4 values"), std::string::npos);
}

}  // namespace
}  // namespace echelon
