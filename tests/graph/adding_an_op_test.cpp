// docs/adding-an-op.md shows the files as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/source_path.h"

namespace echelon {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(source_path(path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(AddingAnOp, ShowsWhatIsThere) {
  const std::string page = text_of("docs/adding-an-op.md");
  for (const char* file : {"src/graph/ops/softmax.cpp", "src/graph/ops/softmax.h"})
    EXPECT_NE(page.find("\n" + text_of(file) + "```\n"), std::string::npos) << file << " reads differently now";
}

// Every line of the page's other pieces of code stands in the file that the page names for it.
TEST(AddingAnOp, QuotesLinesThatAreThere) {
  const std::string page = text_of("docs/adding-an-op.md");
  const std::string kernels = text_of("src/kernels/softmax.h"), tests = text_of("tests/graph/ops_test.cpp");
  int quoted = 0;
  std::stringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool kernel = line.starts_with("void "), test = line.starts_with("check_gradient(");
    if (kernel) {
      EXPECT_NE(kernels.find(line), std::string::npos) << line;
    }
    if (test) {
      EXPECT_NE(tests.find(line), std::string::npos) << line;
    }
    quoted += kernel || test;
  }
  EXPECT_EQ(quoted, 5);
  EXPECT_NE(text_of("src/nn/layer_kinds.cpp").find("\"softmax\""), std::string::npos);
}

}  // namespace
}  // namespace echelon
