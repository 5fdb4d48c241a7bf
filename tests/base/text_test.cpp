#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace echelon {
namespace {

TEST(Text, EditDistanceCountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("momentum", "momnetum"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("lr", "rl"), 1);
  EXPECT_EQ(edit_distance("batch", "batches"), 2);
}

TEST(Text, EditDistanceIsAMetricOnSmallWords) {
  const std::vector<std::string> words{"", "a", "b", "ab", "ba", "abc", "acb", "cab", "bbb", "abab"};
  for (const auto& a : words)
    for (const auto& b : words) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
      EXPECT_EQ(edit_distance(a, b) == 0, a == b);
    }
}

TEST(Text, NearestSuggestsTheLikelyWordOnly) {
  const std::vector<std::string> keys{"momentum", "lr", "weight_decay", "batch", "epochs"};
  EXPECT_EQ(nearest("momentun", keys), "momentum");
  EXPECT_EQ(nearest("weight-decay", keys), "weight_decay");
  EXPECT_EQ(nearest("Epoch", keys), "epochs");
  EXPECT_EQ(nearest("xyzzy", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest("ab", std::vector<std::string>{}), std::nullopt);
  EXPECT_EQ(nearest("q", std::vector<std::string>{"x"}), std::nullopt);  // nothing in common
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), keys), std::nullopt);
  EXPECT_EQ(did_you_mean("bacth", keys), "; did you mean 'batch'?");
  EXPECT_EQ(did_you_mean("xyzzy", keys), "");
}

TEST(Text, NumbersReadAtAGlance) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(999.6), "1.0 k");
  EXPECT_EQ(human_count(1234), "1.2 k");
  EXPECT_EQ(human_count(61706), "61.7 k");
  EXPECT_EQ(human_count(999950), "1.0 M");
  EXPECT_EQ(human_count(-2.5e9), "-2.5 G");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(3.4 * 1024 * 1024), "3.4 MiB");
  EXPECT_EQ(human_bytes(1023.9 * 1024), "1.0 MiB");
}

TEST(Text, DurationsReadAtAGlance) {
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(3e-6), "3 µs");
  EXPECT_EQ(human_duration(0.0123), "12.3 ms");
  EXPECT_EQ(human_duration(0.5), "0.5 s");
  EXPECT_EQ(human_duration(9.96), "10 s");
  EXPECT_EQ(human_duration(59.6), "1 m 00 s");
  EXPECT_EQ(human_duration(72), "1 m 12 s");
  EXPECT_EQ(human_duration(3 * 3600 + 5 * 60), "3 h 05 m");
  EXPECT_EQ(human_duration(86399), "1 d 0 h");
  EXPECT_EQ(human_duration(2 * 86400 + 4 * 3600), "2 d 4 h");
}

TEST(Text, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("µ█⣿"), 3);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("\033[31mred\033[0m"), 3);
  EXPECT_EQ(display_width("\xff\xfe"), 2);  // not UTF-8: never fewer than what a terminal may show
}

TEST(Text, FitGivesExactlySoManyColumns) {
  for (const char* text : {"", "a", "abcdefgh", "µµµµµµ", "漢字漢字", "\033[31mred and more\033[0m"})
    for (int columns = 0; columns < 12; ++columns) EXPECT_EQ(display_width(fit(text, columns)), columns) << text;
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(fit("\033[31mabcdef\033[0m", 4), "\033[31mabc…\033[0m");  // the colour is switched off again
}

TEST(Text, Utf8) {
  EXPECT_EQ(utf8(U'a'), "a");
  EXPECT_EQ(utf8(U'µ'), "µ");
  EXPECT_EQ(utf8(0x28ff), "⣿");
  EXPECT_EQ(utf8(0x1f600), "\xf0\x9f\x98\x80");
}

TEST(Text, WrappedBreaksBetweenWordsOnly) {
  EXPECT_EQ(wrapped("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("a extraordinarily b", 8, 0, 2), "a\n  extraordinarily\n  b\n");
  EXPECT_EQ(wrapped("", 8, 3), "   \n");
  for (int columns = 10; columns < 40; ++columns) {
    const std::string text = wrapped("words of some length, none of them very long", columns, 2);
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), columns);
  }
}

TEST(Text, AWordForTheShellIsQuotedWhereItMust) {
  EXPECT_EQ(shell_quoted("runs/demo-1/recipe.toml"), "runs/demo-1/recipe.toml");
  EXPECT_EQ(shell_quoted("optim.lr=0.05"), "optim.lr=0.05");
  EXPECT_EQ(shell_quoted("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("a$b"), "'a$b'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace echelon
