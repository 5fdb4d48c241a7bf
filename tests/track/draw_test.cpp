#include "track/draw.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using test::says;

std::vector<std::string> digits() {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(std::to_string(i));
  return names;
}

// 100 of each digit; seven of the fours were taken for nines.
std::vector<std::int64_t> counts() {
  std::vector<std::int64_t> m(100);
  for (int i = 0; i < 10; ++i) m[i * 11] = 100;
  m[44] = 93, m[49] = 7;
  return m;
}

int widest(const std::string& text) {
  int width = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) width = std::max(width, display_width(line));
  return width;
}

TEST(Draw, AConfusionMatrixShowsItsCounts) {
  const std::string text = draw_confusion(counts(), digits(), 80, false);
  EXPECT_TRUE(says(text, "4   ·   ·   ·   ·  93   ·   ·   ·   ·   7   93.00 %"));
  EXPECT_TRUE(says(text, "100.00 %"));
  EXPECT_TRUE(text.starts_with("true class ↓  predicted →\n"));
  EXPECT_EQ(text.find('\033'), std::string::npos);
  const std::string coloured = draw_confusion(counts(), digits(), 80, true);
  EXPECT_TRUE(says(coloured, "\033[48;5;"));
  EXPECT_EQ(widest(coloured), widest(text));
}

TEST(Draw, AConfusionMatrixFitsOrSaysTheMistakes) {
  for (int columns = 30; columns < 120; ++columns)
    for (const bool colour : {false, true})
      EXPECT_LE(widest(draw_confusion(counts(), digits(), columns, colour)), columns);
  EXPECT_TRUE(says(draw_confusion(counts(), digits(), 40, false), "██"));
  EXPECT_TRUE(says(draw_confusion(counts(), digits(), 40, false), "predicted →"));
  EXPECT_TRUE(says(draw_confusion(counts(), digits(), 30, false), "7 of '4' taken for '9'"));
  std::vector<std::int64_t> none(100);
  EXPECT_TRUE(says(draw_confusion(none, digits(), 30, false), "no mistakes"));
  EXPECT_FALSE(draw_confusion(none, digits(), 80, true).empty());  // a class without samples divides nothing by zero
}

TEST(Draw, AConfusionMatrixCutsNoNameForWhichThereIsRoom) {
  const std::vector<std::int64_t> right{7, 0, 0, 7};
  EXPECT_TRUE(says(draw_confusion(right, {"versicolor", "virginica"}, 80, false), "versicolor  virginica"));
  EXPECT_FALSE(says(draw_confusion(right, {"versicolor", "virginica"}, 40, false), "versicolor  virginica"));
}

TEST(Draw, AnImageIsHalfAsHighAsItIsWide) {
  std::vector<std::uint8_t> pixels(28 * 28, 0);
  pixels[0] = pixels[28] = 255;  // the two pixels of the first character
  const auto plain = draw_image(pixels, 28, 28, false);
  ASSERT_EQ(plain.size(), 14u);
  for (const auto& line : plain) EXPECT_EQ(line.size(), 28u);
  EXPECT_EQ(plain[0][0], '@');
  EXPECT_EQ(plain[0][1], ' ');
  const auto coloured = draw_image(pixels, 28, 28, true);
  for (const auto& line : coloured) EXPECT_EQ(display_width(line), 28);
  EXPECT_TRUE(coloured[0].starts_with("\033[38;5;255;48;5;255m▀\033[38;5;232;48;5;232m")) << coloured[0];
  EXPECT_EQ(draw_image(pixels, 5, 5, false).size(), 3u);  // an odd height
}

TEST(Draw, PicturesStandBesideEachOther) {
  const std::vector<Picture> three{{"one", {"aaaa", "aaaa"}}, {"two, longer", {"bbbb"}}, {"three", {"cccc", "cccc"}}};
  EXPECT_EQ(side_by_side(three, 40),
            "one   two, longer  three\n"
            "aaaa  bbbb         cccc\n"
            "aaaa               cccc\n");
  EXPECT_EQ(side_by_side(three, 20),
            "one   two, longer\n"
            "aaaa  bbbb\n"
            "aaaa\n"
            "\n"
            "three\n"
            "cccc\n"
            "cccc\n");
}

}  // namespace
}  // namespace echelon
