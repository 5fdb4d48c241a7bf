#include "recipe/init.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

class Init : public ::testing::Test {
 public:
  Init()
      : dir_(::testing::TempDir() + "echelon_init_" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    disk_->remove_all(dir_);
    disk_->make_directories(dir_);
  }
  ~Init() override { disk_->remove_all(dir_); }

 protected:
  // Writes a recipe for the data and checks that it is one that could be trained at once.
  PreparedRun init(const Options& data) {
    text_ = initial_recipe(*disk_, data, places_);
    write_file_atomically(*disk_, dir_ + "/r.toml", text_);
    Problems problems;
    PreparedRun run = prepare_run(*disk_, dir_ + "/r.toml", {}, problems, places_);
    EXPECT_TRUE(problems.empty()) << problems.text("r.toml") << "\n" << text_;
    // The other networks that it proposes fit, too.
    const auto others = text_.find("# or ", text_.find("[model]"));
    std::istringstream names(text_.substr(others + 5, text_.find('\n', others) - others - 5));
    if (others > text_.find("[data]")) return run;
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      prepare_run(*disk_, dir_ + "/r.toml", {"model.name=" + name}, problems, places_);
      EXPECT_TRUE(problems.empty()) << name << " " << problems.text("r.toml");
    }
    return run;
  }
  Options synthetic(const std::string& more) { return parse_toml("kind = 'synthetic'\n" + more, "data"); }

  std::unique_ptr<Disk> disk_ = make_real_disk();
  data::DataPlaces places_{.root = "nowhere", .share = {source_path("share")}};
  std::string dir_, text_;
};

TEST_F(Init, ChoosesANetworkThatFits) {
  EXPECT_EQ(init(guess_data(*disk_, "digits")).recipe.model_name, "lenet5");
  EXPECT_NE(text_.find("kind = \"normalise\""), std::string::npos) << text_;
  EXPECT_EQ(init(synthetic("make = 'images'\nshape = [3, 32, 32]")).recipe.model_name, "resnet20");
  EXPECT_EQ(init(synthetic("make = 'images'\nshape = [3, 80, 96]\nsamples = 100")).recipe.model_name, "resnet18");
  EXPECT_EQ(init(synthetic("make = 'blobs'\nshape = [7]")).recipe.model_name, "mlp");
  EXPECT_EQ(init(synthetic("make = 'tokens'\nshape = [20]")).recipe.model_name, "gpt");
}

TEST_F(Init, KeepsSomeBackWhereThereAreNoTestData) {
  std::string csv = "a,b,label\n";
  for (int i = 0; i < 200; ++i) csv += fmt::format("{},{},{}\n", i % 7, i % 3, i % 2 ? "yes" : "no");
  write_file_atomically(*disk_, dir_ + "/t.csv", csv);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/t.csv"));
  EXPECT_EQ(s.train->size() + s.test->size(), 200u);
  EXPECT_EQ(s.test->size(), 20u);
  EXPECT_NE(text_.find("holdout = 0.1"), std::string::npos) << text_;
  EXPECT_LE(s.recipe.train.batch, 25);
}

TEST_F(Init, SaysWhatItCannotGuess) {
  EXPECT_THROW(guess_data(*disk_, "minst"), BadInput);
  EXPECT_THROW(guess_data(*disk_, dir_), BadInput);
  write_file_atomically(*disk_, dir_ + "/t.xyz", "");
  EXPECT_THROW(guess_data(*disk_, dir_ + "/t.xyz"), BadInput);
  EXPECT_EQ(std::get<std::string>(guess_data(*disk_, dir_ + "/t.xyz", "csv").items.at("kind").value), "csv");
}

}  // namespace
}  // namespace echelon
