#pragma once
// A directory of a test's own, gone with all its contents when the test is over.

#include <filesystem>
#include <string>

namespace echelon::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? root_ : root_ + "/" + name; }

 private:
  std::string root_;
};

// What a shell command prints; the test fails if it does not end with exit code 0.
std::string output_of(const std::string& command);

}  // namespace echelon::test
