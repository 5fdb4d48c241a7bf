// docs/adding-a-codec.md shows the files as they are; docs/codecs.md names every codec.

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

std::string file_text(const std::string& path) { return read_text(*make_real_disk(), source_path(path)); }

TEST(CodecDocs, AddingACodecShowsTheFilesAsTheyAre) {
  const std::string page = file_text("docs/adding-a-codec.md");
  EXPECT_NE(page.find("\n" + file_text("src/codec/codecs/terngrad.cpp") + "```\n"), std::string::npos)
      << "terngrad.cpp reads differently now";
  EXPECT_NE(page.find("CodecPart terngrad();\n"), std::string::npos);
  EXPECT_NE(file_text("src/codec/codecs.h").find("CodecPart terngrad();\n"), std::string::npos);
  EXPECT_NE(file_text("src/codec/codecs.cpp").find("terngrad()"), std::string::npos);
}

TEST(CodecDocs, NameEveryCodec) {
  const std::string page = file_text("docs/codecs.md");
  for (const std::string& name : codec_names()) EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
}

}  // namespace
}  // namespace echelon
