#include "base/options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace echelon {
namespace {

Options table() {
  Options t;
  t.where = "optim";
  t.place = 3;
  t.items["lr"] = {0.5, 4};
  t.items["steps"] = {std::int64_t{10}, 5};
  t.items["round"] = {1e4, 6};
  t.items["name"] = {std::string("adam"), 7};
  t.items["nesterov"] = {true, 8};
  t.items["sizes"] = {Option::List{{std::int64_t{1}, 9}, {std::int64_t{2}, 9}}, 9};
  t.items["nan"] = {std::nan(""), 10};
  auto inner = std::make_shared<Options>();
  inner->where = "optim.clip";
  inner->place = 11;
  inner->items["norm"] = {std::int64_t{1}, 12};
  t.items["clip"] = {inner, 11};
  t.items["layers"] = {Option::List{{inner, 11}, {inner, 11}}, 13};
  return t;
}

TEST(Options, ReadsWhatFits) {
  const Options t = table();
  Problems problems;
  OptionReader r(t, problems);
  EXPECT_EQ(r.number("lr", 1, 0, 10), 0.5);
  EXPECT_EQ(r.integer("steps", 1, 0, 10), 10);
  EXPECT_EQ(r.number("steps", 1, 0, 10), 10.0);
  EXPECT_EQ(r.integer("round", 1), 10000);
  EXPECT_EQ(r.choice("name", "sgd", {"sgd", "adam"}), "adam");
  EXPECT_TRUE(r.flag("nesterov", false));
  EXPECT_EQ(r.integers("sizes", {}), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(r.integers("steps", {}), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(r.numbers("sizes", {}), (std::vector<double>{1, 2}));
  EXPECT_EQ(r.texts("name", {}), (std::vector<std::string>{"adam"}));
  EXPECT_EQ(r.table("clip").integer("norm", 0), 1);
  EXPECT_EQ(r.tables("layers").size(), 2u);
  EXPECT_EQ(r.table("absent").where(), "optim.absent");
  EXPECT_EQ(r.integer("absent", 7), 7);
  EXPECT_TRUE(r.require("lr", ""));
  r.ignore("nan");
  r.done();
  EXPECT_TRUE(problems.empty()) << problems.text("f");
}

TEST(Options, EveryProblemIsReportedAtOnceWithItsLineAndReadingGoesOnWithTheDefault) {
  const Options t = table();
  Problems problems;
  OptionReader r(t, problems);
  EXPECT_EQ(r.integers("sizes", {5}, 2), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(r.integer("lr", 3), 3);
  EXPECT_EQ(r.number("lr", 3, 1, 2), 3);
  EXPECT_EQ(r.integer("steps", 3, 11), 3);
  EXPECT_EQ(r.number("nan", 1), 1);
  EXPECT_EQ(r.choice("name", "sgd", {"sgd", "adamw"}), "sgd");
  EXPECT_EQ(r.text("steps", "x"), "x");
  EXPECT_TRUE(r.tables("lr").empty());
  EXPECT_FALSE(r.require("absent", "say it"));
  const std::string all = problems.text("r.toml");
  EXPECT_EQ(problems.list().size(), 9u) << all;
  EXPECT_LT(all.find("r.toml:3: optim.absent is missing: say it"), all.find("r.toml:4: ")) << all;
  EXPECT_NE(all.find("r.toml:4: optim.lr must be a number from 1 to 2, is 0.5"), std::string::npos) << all;
  EXPECT_NE(all.find("r.toml:5: optim.steps must be a whole number, at least 11, is 10"), std::string::npos) << all;
  EXPECT_NE(all.find("did you mean 'adamw'?"), std::string::npos) << all;
  EXPECT_NE(all.find("r.toml:9: optim.sizes must be a list"), std::string::npos) << all;
  EXPECT_THROW(problems.throw_if_any("r.toml"), BadInput);
}

TEST(Options, AnUnreadKeyIsAProblemWithTheNearestKnownKey) {
  Options t;
  t.where = "train";
  t.items["epoch"] = {std::int64_t{1}, 2};
  t.items["zebra"] = {std::int64_t{1}, Place(4, "base.toml")};
  Problems problems;
  OptionReader r(t, problems);
  r.integer("epochs", 1);
  r.integer("batch", 1);
  r.done();
  EXPECT_EQ(problems.text("r.toml"),
            "r.toml:2: unknown key train.epoch; did you mean 'epochs'?\n"
            "base.toml:4: unknown key train.zebra; known here: batch, epochs");
}

}  // namespace
}  // namespace echelon
