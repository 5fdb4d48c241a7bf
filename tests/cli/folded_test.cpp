#include "cli/folded.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace echelon::cli {
namespace {

TEST(Folded, BreaksLongLinesBetweenGroupsAndElseBetweenWords) {
  EXPECT_EQ(folded("short\n\nalso  short\n", 12, 2), "short\n\nalso  short\n");
  EXPECT_EQ(folded("loss   val 0.5  mae 12.25", 16, 4), "loss   val 0.5\n    mae 12.25");
  EXPECT_EQ(folded("note: several words of a sentence", 12, 2), "note:\n  several\n  words of a\n  sentence");
  EXPECT_EQ(folded("x  0123456789abcdef  y", 10, 1), "x\n 0123456789abcdef\n y");
  for (int columns = 12; columns < 60; ++columns) {
    const std::string text = folded("validation  loss 0.5  accuracy 93.33 %  (of ninety samples)  end", columns, 2);
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), columns);
  }
}

}  // namespace
}  // namespace echelon::cli
