#pragma once
// For messages: EXPECT_TRUE(says(text, "a part of it")), and the text itself when the part is not there.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace echelon::test {

inline testing::AssertionResult says(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected \"" << part << "\" in: " << text;
}

// The message of the BadInput that `run` throws; "" if it throws none.
template <typename Run>
std::string complaint_of(Run&& run) {
  try {
    run();
    return "";
  } catch (const BadInput& e) {
    return e.what();
  }
}

}  // namespace echelon::test
