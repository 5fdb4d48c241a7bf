#include "recipe/init.h"

#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "base/error.h"
#include "data/images/image.h"
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
  ASSERT_TRUE(s.validation);
  EXPECT_EQ(s.train->size(), 160u);
  EXPECT_EQ(s.validation->size(), 20u);
  EXPECT_EQ(s.test->size(), 20u);
  EXPECT_LE(s.recipe.train.batch, 25);
  EXPECT_EQ(text_.find("class_weights"), std::string::npos) << "the classes are alike";
}

TEST_F(Init, KeepsAPartOfATextToValidateWith) {
  std::string story;
  for (int i = 0; i < 400; ++i) story += fmt::format("line {} of the story.\n", i);
  write_file_atomically(*disk_, dir_ + "/story.txt", story);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/story.txt"));
  ASSERT_TRUE(s.validation && s.test);
  EXPECT_NE(text_.find("validation = 0.1"), std::string::npos) << text_;
}

TEST_F(Init, RefusesTooFewRowsAndOneClass) {
  write_file_atomically(*disk_, dir_ + "/three.csv", "a,b,c\n1,2,3\n2,3,4\n4,5,6\n");
  EXPECT_THROW(initial_recipe(*disk_, guess_data(*disk_, dir_ + "/three.csv"), places_), BadInput);
  disk_->make_directories(dir_ + "/pets/cat");
  const auto png = data::encode_png(std::vector<std::uint8_t>(16 * 16 * 3, 7), {16, 16}, 3);
  for (int i = 0; i < 20; ++i) write_file_atomically(*disk_, fmt::format("{}/pets/cat/{}.png", dir_, i), png);
  try {
    initial_recipe(*disk_, guess_data(*disk_, dir_ + "/pets"), places_);
    FAIL() << "one class";
  } catch (const BadInput& problem) {
    EXPECT_NE(std::string(problem.what()).find("one class ('cat')"), std::string::npos) << problem.what();
  }
}

TEST_F(Init, PointsOutRareClasses) {
  std::string csv = "a,label\n";
  for (int i = 0; i < 200; ++i) csv += fmt::format("{},{}\n", i * 7 % 50, i % 10 ? "no" : "yes");
  write_file_atomically(*disk_, dir_ + "/t.csv", csv);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/t.csv"));
  EXPECT_NE(text_.find("# class_weights = \"balanced\"   # the rarest class has"), std::string::npos) << text_;
  EXPECT_EQ(s.recipe.train.monitor, "val_f1");  // nine of ten are right who always say no
  ASSERT_TRUE(s.monitor);
  EXPECT_EQ(s.monitor->name, "f1");
}

TEST_F(Init, PointsOutRareClassesOfPicturesToo) {
  const auto png = data::encode_png(std::vector<std::uint8_t>(16 * 16 * 3, 7), {16, 16}, 3);
  for (const auto& [name, pictures] : {std::pair("cat", 60), std::pair("dog", 12)}) {
    disk_->make_directories(fmt::format("{}/pets/{}", dir_, name));
    for (int i = 0; i < pictures; ++i)
      write_file_atomically(*disk_, fmt::format("{}/pets/{}/{}.png", dir_, name, i), png);
  }
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/pets"));
  EXPECT_NE(text_.find("the rarest class has 12 samples, the most frequent 60"), std::string::npos) << text_;
  EXPECT_EQ(s.recipe.train.monitor, "val_f1");
}

TEST_F(Init, TablesSayWhatWasFound) {
  std::string csv = "id;ort;preis\n";
  for (int i = 0; i < 200; ++i)
    csv += fmt::format("{};{};{},5\n", i, std::array{"Bern", "Basel", "Genf"}[static_cast<std::size_t>(i % 3)],
                       i * 7 % 50);
  write_file_atomically(*disk_, dir_ + "/t.csv", csv);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/t.csv"));
  EXPECT_NE(text_.find("kind = \"table\""), std::string::npos) << text_;
  EXPECT_NE(text_.find("label = \"preis\""), std::string::npos) << text_;
  EXPECT_NE(text_.find("task = \"regress\""), std::string::npos) << text_;
  EXPECT_NE(text_.find("semicolons, decimal comma"), std::string::npos) << text_;
  EXPECT_NE(text_.find("'id' (it numbers the rows)"), std::string::npos) << text_;
  EXPECT_EQ(s.recipe.model_name, "mlp");
  EXPECT_EQ(s.train->fields()[0].shape, Shape{3}) << "the cities, and neither the id nor what is predicted";
  EXPECT_FALSE(s.recipe.notes.empty()) << "what was found is shown when it trains, too";
  Options two = guess_data(*disk_, dir_ + "/t.csv");
  two.items["label"].value = std::string("ort");
  two.items["ignore"].value = std::string("id");
  EXPECT_EQ(init(two).train->info().classes, 3);
}

TEST_F(Init, NamesFromOutsideStayInTheirComments) {
  std::string csv = "\"a\n[train]\nbatch = 1\",\"c\n\",y\n";
  for (int i = 0; i < 40; ++i) csv += fmt::format("{},{},{}.5\n", i * i, i % 5 ? "" : "x", i);
  write_file_atomically(*disk_, dir_ + "/t.csv", csv);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/t.csv"));
  const Options again = parse_toml(resolved_toml(s.recipe), "r.toml");
  EXPECT_EQ(again.items.size(), s.recipe.tree.items.size());
}

TEST_F(Init, ColumnsWithManyCategoriesAreEmbedded) {
  std::string csv = "shop,amount,label\n";
  for (int i = 0; i < 400; ++i) csv += fmt::format("s{},{},{}\n", i % 40, i, i % 40 < 20 ? "yes" : "no");
  write_file_atomically(*disk_, dir_ + "/t.csv", csv);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/t.csv"));
  EXPECT_EQ(s.recipe.model_name, "tabular");
  EXPECT_EQ(s.train->info().inputs, 2u);
  EXPECT_EQ(s.train->fields()[1].categories, (std::vector<std::int64_t>{41}));
}

TEST_F(Init, PicturesOfMixedSizesAreBroughtToOne) {
  for (const char* split : {"train", "test"})
    for (const char* name : {"cat", "dog"}) disk_->make_directories(fmt::format("{}/p/{}/{}", dir_, split, name));
  const auto picture = [&](const std::string& path, std::int64_t height, std::int64_t width) {
    const std::vector<std::uint8_t> grey(static_cast<std::size_t>(height * width), 9);
    const auto png = data::encode_png(grey, {height, width}, 1);
    write_file_atomically(*disk_, dir_ + "/p/" + path,
                          std::string(reinterpret_cast<const char*>(png.data()), png.size()));
  };
  int side = 36;
  for (const char* place : {"train/cat/", "train/dog/", "test/cat/", "test/dog/"})
    for (int i = 0; i < 8; ++i, ++side) picture(fmt::format("{}{}.png", place, i), side, side + 4);
  const PreparedRun s = init(guess_data(*disk_, dir_ + "/p"));
  ASSERT_TRUE(s.test);
  EXPECT_EQ(s.train->fields()[0].shape, (Shape{1, 44, 48})) << "they are grey, of 36 x 40 to 51 x 55";
  EXPECT_EQ(s.test->fields()[0].shape, (Shape{1, 44, 48}));
  EXPECT_NE(text_.find("size = [44, 48]"), std::string::npos) << text_;
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
