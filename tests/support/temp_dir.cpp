#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace echelon::test {

namespace {

// In memory where there is such a place: tests that sync thousands of times then do not wait for a medium.
std::filesystem::path place() {
  std::error_code ignored;
  if (!::getenv("TMPDIR") && ::access("/dev/shm", W_OK) == 0 && std::filesystem::is_directory("/dev/shm", ignored))
    return "/dev/shm";
  return std::filesystem::temp_directory_path();
}

}  // namespace

TempDir::TempDir() {
  root_ = (place() / "echelon_test_XXXXXX").string();
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
