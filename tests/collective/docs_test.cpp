// docs/adding-a-collective.md shows the files as they are.

#include <gtest/gtest.h>

#include "collective/algorithms.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

std::string file_text(const std::string& path) { return read_text(*make_real_disk(), source_path(path)); }

TEST(CollectiveDocs, AddingACollectiveShowsTheFilesAsTheyAre) {
  const std::string page = file_text("docs/adding-a-collective.md");
  EXPECT_NE(page.find("\n" + file_text("src/collective/all_reduce/binomial.cpp") + "```\n"), std::string::npos)
      << "binomial.cpp reads differently now";
  const std::string table = file_text("src/collective/algorithms.cpp");
  for (const char* line : {"Algorithm binomial_all_reduce();\n", "      binomial_all_reduce(),\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line;
    EXPECT_NE(table.find(line), std::string::npos) << line;
  }
}

TEST(CollectiveDocs, NameEveryAlgorithm) {
  const std::string page = file_text("docs/collectives.md");
  for (const Algorithm& a : all_reduce_algorithms())
    EXPECT_NE(page.find("| `" + std::string(a.name) + "` |"), std::string::npos) << a.name;
}

}  // namespace
}  // namespace echelon
