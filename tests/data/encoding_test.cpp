#include "data/encoding.h"

#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;

SourcePtr bytes_source(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source("t.txt", {bytes.begin(), bytes.end()});
}

std::string decoded(std::string_view text, Encoding encoding) {
  const SourcePtr source = as_utf8(bytes_source(text), encoding);
  return {reinterpret_cast<const char*>(source->at(0, source->size())), source->size()};
}

using namespace std::string_view_literals;

TEST(TextEncoding, IsFoundByItsMarkOrItsBytes) {
  EXPECT_EQ(find_encoding("plain"), Encoding::utf8);
  EXPECT_EQ(find_encoding("Z\xC3\xBCrich"), Encoding::utf8);
  EXPECT_EQ(find_encoding("Z\xFCrich"), Encoding::latin1);
  EXPECT_EQ(find_encoding("\xFF\xFEZ\0"sv), Encoding::utf16);
  EXPECT_EQ(find_encoding("\xFE\xFF\0Z"sv), Encoding::utf16);
}

TEST(TextEncoding, BecomesUtf8WithoutTheMark) {
  EXPECT_EQ(decoded("Z\xFCrich", Encoding::latin1), "Z\xC3\xBCrich");
  EXPECT_EQ(decoded("\xFF\xFEZ\0\xFC\0"sv, Encoding::utf16), "Z\xC3\xBC");
  EXPECT_EQ(decoded("\xFE\xFF\0Z\0\xFC"sv, Encoding::utf16), "Z\xC3\xBC");
  EXPECT_EQ(decoded("Z\0"sv, Encoding::utf16), "Z");
  EXPECT_EQ(decoded("\xFF\xFE\x3D\xD8\x00\xDE"sv, Encoding::utf16), "\xF0\x9F\x98\x80") << "a pair is one character";
}

TEST(TextEncoding, RefusesWhatIsNoUtf16) {
  for (const auto text : {"\xFF\xFEZ"sv, "\xFF\xFE\x3D\xD8"sv, "\xFF\xFE\x3D\xD8Z\0"sv, "\xFF\xFE\x00\xDE"sv})
    EXPECT_TRUE(says(complaint_of([&] { decoded(text, Encoding::utf16); }), "t.txt: at byte 2: expected UTF-16"));
}

}  // namespace
}  // namespace echelon::data
