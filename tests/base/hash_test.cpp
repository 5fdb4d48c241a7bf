#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"
#include "base/sha256.h"

namespace echelon {
namespace {

// Known answers of FIPS 180-4.
TEST(Sha256, MatchesPublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheHashOfTheWhole) {
  Sha256 hash;
  for (const char* piece : {"a", "", "b", "c"}) hash.update(piece);
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
  hash.update("abc");  // and it can be used again
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
  hash.update_u64(0x0102030405060708u);
  EXPECT_EQ(hash.hex(), sha256_hex("\x08\x07\x06\x05\x04\x03\x02\x01"));
}

// Known answers of RFC 3720, B.4.
TEST(Crc32c, MatchesPublishedVectors) {
  const auto of = [](const std::string& s) { return crc32c(std::as_bytes(std::span(s))); };
  EXPECT_EQ(of(""), 0u);
  EXPECT_EQ(of("123456789"), 0xe3069283u);
  EXPECT_EQ(of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(of(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(masked_crc(0), 0xa282ead8u);
}

TEST(Crc32c, IsTheBitwiseDefinitionAtEveryLengthAndSplit) {
  std::string text;
  for (int i = 0; i < 40; ++i) text.push_back(static_cast<char>(i * 37));
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    std::uint32_t expected = ~0u;
    for (const std::byte b : bytes.first(length)) {
      expected ^= static_cast<std::uint32_t>(b);
      for (int bit = 0; bit < 8; ++bit) expected = (expected >> 1) ^ ((expected & 1) ? 0x82f63b78u : 0);
    }
    for (std::size_t split = 0; split <= length; ++split)
      EXPECT_EQ(crc32c(bytes.subspan(split, length - split), crc32c(bytes.first(split))), ~expected);
  }
}

// Long enough for the three streams: whole and in splits of every kind, against one byte at a time.
TEST(Crc32c, LongTextsAreTheSameInOnePieceAndInMany) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text.push_back(static_cast<char>(i * 37 + i / 251));
  const auto bytes = std::as_bytes(std::span(text));
  for (const std::size_t length : {3071, 3072, 3073, 6144, 9999, 20000}) {
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < length; ++i) expected = crc32c(bytes.subspan(i, 1), expected);
    EXPECT_EQ(crc32c(bytes.first(length)), expected) << length;
    for (const std::size_t split : {1, 100, 3000, 3071}) {
      EXPECT_EQ(crc32c(bytes.subspan(split, length - split), crc32c(bytes.first(split))), expected);
    }
  }
}

}  // namespace
}  // namespace echelon
