#include "recipe/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace echelon {
namespace {

std::string problem_of(std::string_view text, const TomlLimits& limits = {}) {
  try {
    parse_toml(text, "r.toml", limits);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

constexpr const char* sample = R"(
title = "one \"quoted\" \n text"
[model]
name = "mlp"
hidden = [100, 50]
dropout = 0.5
[[model.layers]]
kind = "conv"
deep.key = true
[[model.layers]]
kind = "pool"

[train]
epochs = 3
big = 1e300
whole = 2.0
)";

TEST(Toml, KeepsValuesTypesNamesAndLines) {
  const Options o = parse_toml(sample, "r.toml");
  const Options& model = *std::get<Option::Table>(o.items.at("model").value);
  EXPECT_EQ(model.where, "model");
  EXPECT_EQ(model.place.line, 3);
  EXPECT_EQ(model.place.file, "r.toml");
  EXPECT_EQ(model.items.at("name").place.line, 4);
  EXPECT_EQ(std::get<double>(model.items.at("dropout").value), 0.5);
  const auto& layers = std::get<Option::List>(model.items.at("layers").value);
  EXPECT_EQ(std::get<Option::Table>(layers[1].value)->where, "model.layers[1]");
  EXPECT_EQ(std::get<Option::Table>(layers[1].value)->place.line, 10);
  const Options& train = *std::get<Option::Table>(o.items.at("train").value);
  EXPECT_EQ(std::get<std::int64_t>(train.items.at("epochs").value), 3);
}

TEST(Toml, WhatIsWrittenIsReadBackTheSame) {
  const std::string written = write_toml(parse_toml(sample, "r.toml"));
  EXPECT_EQ(write_toml(parse_toml(written, "again")), written);
  EXPECT_NE(written.find("whole = 2.0\n"), std::string::npos) << written;
  EXPECT_LT(written.find("name = \"mlp\""), written.find("dropout")) << written;
  const Options again = parse_toml(written, "again");
  EXPECT_EQ(std::get<std::string>(again.items.at("title").value), "one \"quoted\" \n text");
}

TEST(Toml, SyntaxErrorsNameFileAndLine) {
  EXPECT_NE(problem_of("a = 1\nb = = 2").find("r.toml:2: "), std::string::npos) << problem_of("a = 1\nb = = 2");
  EXPECT_NE(problem_of("a = 1\na = 2").find("r.toml:2: "), std::string::npos);
  EXPECT_NE(problem_of("day = 2020-01-01").find("put it in quotes"), std::string::npos);
}

TEST(Toml, RefusesWhatIsTooLargeOrTooDeep) {
  EXPECT_NE(problem_of(std::string(100, '\n'), {.bytes = 99}), "");
  EXPECT_NE(problem_of("a = [[[[1]]]]", {.depth = 4}).find("deeper than 4"), std::string::npos);
  EXPECT_EQ(problem_of("a = [[[1]]]", {.depth = 4}), "");
  EXPECT_NE(problem_of("a = [1, 2, 3]", {.values = 3}).find("more than 3 values"), std::string::npos);
  std::string dotted = "a";
  for (int i = 0; i < 200000; ++i) dotted += ".a";
  EXPECT_NE(problem_of(dotted + " = 1").find("dots"), std::string::npos);
  EXPECT_NE(problem_of("[" + dotted + "]"), "");
  EXPECT_NE(problem_of("a = " + std::string(100000, '[')), "");
  std::string few = "a";
  for (int i = 0; i < 4000; ++i) few += ".a";
  EXPECT_NE(problem_of(few + " = 1").find("deeper"), std::string::npos);
  EXPECT_EQ(problem_of("# " + std::string(10000, '.') + "\na = 1"), "");
}

}  // namespace
}  // namespace echelon
