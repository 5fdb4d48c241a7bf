#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>

namespace echelon::test {

TempDir::TempDir() {
  root_ = (std::filesystem::temp_directory_path() / "echelon_test_XXXXXX").string();
  if (!::mkdtemp(root_.data())) throw std::runtime_error("no directory for the test: " + root_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "cannot run " << command;
    return "";
  }
  std::string out;
  std::array<char, 4096> piece;
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) out.append(piece.data(), n);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << out;
  return out;
}

}  // namespace echelon::test
