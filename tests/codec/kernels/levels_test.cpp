// Levels, packing and the entropy coder underneath the codecs.

#include "codec/kernels/levels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "codec/wire/bits.h"
#include "codec/wire/range_coder.h"
#include "tests/codec/cases.h"

namespace echelon::codecs {
namespace {

const Noise noise(Stream({.seed = 5}));

TEST(Levels, AreThoseOfTheReadableTwin) {
  const auto x = test::gradient({{.size = 1003}}, 1);
  for (const Grid grid : {Grid{30, 1, 2}, Grid{1000, 7, 14}, Grid{5000, 127.5, 255}, Grid{0, 1, 2}}) {
    std::vector<std::uint8_t> levels(level_count(x.size()));
    round_to_levels(x, grid, noise, 12345, levels.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(levels[level_place(i)], ref_level(x[i], grid, noise, 12345, i)) << i;
  }
  std::vector<std::int16_t> numbers(x.size());
  for (const float multiply : {16384.0f, 1e9f}) {
    round_to_int16(x, multiply, noise, 77, reinterpret_cast<std::byte*>(numbers.data()));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(numbers[i], ref_int16(x[i], multiply, noise, 77, i)) << i;
  }
}

TEST(Levels, NoiseIsUniformAndItsHalvesAreIndependent) {
  // A fair die for the low and one for the high half of each word, and for the pair of neighbours.
  constexpr int sides = 16, rolls = 400000;
  std::vector<int> low(sides), high(sides), both(sides * sides), neighbours(sides * sides);
  for (std::uint64_t i = 0; i < rolls; ++i) {
    const std::uint32_t word = noise.bits(i), next = noise.bits(i + 1);
    ++low[(word & 0xFFFF) >> 12], ++high[word >> 28];
    ++both[(word >> 28) * sides + ((word & 0xFFFF) >> 12)], ++neighbours[(word >> 28) * sides + (next >> 28)];
  }
  const auto chi_squared = [&](const std::vector<int>& counts) {
    const double expected = static_cast<double>(rolls) / static_cast<double>(counts.size());
    double sum = 0;
    for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
    return (sum - static_cast<double>(counts.size() - 1)) / std::sqrt(2.0 * static_cast<double>(counts.size() - 1));
  };
  for (const auto* counts : {&low, &high, &both, &neighbours}) EXPECT_LT(std::abs(chi_squared(*counts)), 5);
}

TEST(Levels, MomentsAreThoseOfALoop) {
  const auto x = test::gradient({{.size = 9001}}, 2);
  double sum = 0, squares = 0;
  float largest = 0;
  for (const float v : x) sum += v, squares += static_cast<double>(v) * v, largest = std::max(largest, std::abs(v));
  const Moments m = moments(x);
  EXPECT_NEAR(m.sum, sum, 1e-6);
  EXPECT_NEAR(m.squares, squares, 1e-6 * squares);
  EXPECT_EQ(m.largest, largest);
  auto broken = x;
  broken[4711] = NAN;
  EXPECT_TRUE(std::isnan(moments(broken).largest));
}

TEST(Packing, GivesBackEverySymbolAndTouchesNothingElse) {
  const Stream random({.seed = 9});
  for (int bits = 0; bits <= 8; ++bits)
    for (std::size_t n = 1; n <= symbol_block; n += n < 50 ? 1 : 59) {
      std::vector<std::uint8_t> symbols(n), back(n + 1, 0xEE);
      for (std::size_t i = 0; i < n; ++i)
        symbols[i] = static_cast<std::uint8_t>(random.below(bits == 0 ? 3 : 1u << bits, i));
      const std::size_t size = bits == 0 ? packed_trits(n) : packed_bits(n, bits);
      std::vector<std::byte> packed(size + 1, std::byte{0xEE});
      if (bits == 0) {
        pack_trits(symbols.data(), n, packed.data());
        unpack_trits(packed.data(), n, back.data());
      } else {
        pack_bits(symbols.data(), n, bits, packed.data());
        unpack_bits(packed.data(), n, bits, back.data());
      }
      ASSERT_TRUE(std::equal(symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(n), back.begin()))
          << bits << ' ' << n;
      ASSERT_EQ(packed.back(), std::byte{0xEE});
      ASSERT_EQ(back.back(), 0xEE);
    }
}

TEST(RangeCoder, GivesBackTheBytesInAboutTheirEntropy) {
  const Stream random({.seed = 4});
  RangeCoder coder;
  for (const double p : {0.5, 0.1, 0.01})
    for (const std::size_t n : {1, 2, 3, 1000, 200000}) {
      std::vector<std::byte> bytes(n), coded(n + 1000), back(n);
      for (std::size_t i = 0; i < n; ++i)
        bytes[i] = static_cast<std::byte>(random.uniform(i) < p ? random.below(4, i + n) : 77);
      const auto size = coder.encode(bytes, coded);
      ASSERT_TRUE(size.has_value());
      coder.decode(std::span(coded).first(*size), back);
      ASSERT_EQ(back, bytes);
      if (n < 100000) continue;
      const double entropy = -(p * std::log2(p / 4) + (1 - p) * std::log2(1 - p)) / 8;
      EXPECT_LT(static_cast<double>(*size), 1.02 * entropy * static_cast<double>(n) + 100);
    }
}

TEST(RangeCoder, TakesBytesOfOneValueAndOfAllValues) {
  RangeCoder coder;
  std::vector<std::byte> same(5000, std::byte{3}), all(5000), coded(10000), back(5000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 7);
  for (const auto& bytes : {same, all}) {
    const auto size = coder.encode(bytes, coded);
    ASSERT_TRUE(size.has_value());
    coder.decode(std::span(coded).first(*size), back);
    EXPECT_EQ(back, bytes);
  }
  EXPECT_FALSE(coder.encode(all, std::span(coded).first(5000)).has_value());  // no room: they do not get fewer
  EXPECT_LT(*coder.encode(same, coded), 60u);
}

// Of many bytes not all are counted: a value that occurs once, anywhere, must still have a place in the table.
TEST(RangeCoder, MissesNoValueAmongManyBytes) {
  const std::size_t n = 300001;
  std::vector<std::byte> bytes(n, std::byte{9}), coded(n), back(n);
  for (std::size_t i = 0; i < n; i += 3) bytes[i] = std::byte{10};
  RangeCoder coder;
  for (const std::size_t place : {std::size_t{0}, std::size_t{1000}, std::size_t{4095}, n / 2, n - 20, n - 1})
    for (const int value : {0, 15, 127, 128, 255}) {
      auto with = bytes;
      with[place] = static_cast<std::byte>(value);
      const auto size = coder.encode(with, coded);
      ASSERT_TRUE(size.has_value());
      coder.decode(std::span(coded).first(*size), back);
      ASSERT_EQ(back, with) << place << ' ' << value;
    }
}

// A state in the slow and in the quick way is the same: bytes of every length, of which some or none fill whole rows.
TEST(RangeCoder, GivesBackBytesOfEveryLength) {
  const Stream random({.seed = 6});
  RangeCoder coder;
  for (std::size_t n = 1; n < 200; ++n) {
    std::vector<std::byte> bytes(n), coded(n + 1000), back(n);
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random.below(n % 7 * 40 + 2, i + 1000 * n));
    const auto size = coder.encode(bytes, coded);
    ASSERT_TRUE(size.has_value());
    coder.decode(std::span(coded).first(*size), back);
    ASSERT_EQ(back, bytes) << n;
    EXPECT_THROW(coder.decode(std::span(coded).first(*size - 1), back), Failure);
    if (n == 1) continue;  // of bytes that are all equal any number may be
    back.resize(n + 1);
    EXPECT_THROW(coder.decode(std::span(coded).first(*size), back), Failure);
  }
}

// Every codec's bytes and numbers with SSE4 are those with AVX2.
TEST(Levels, AreTheSameOnEveryInstructionSet) {
  const auto pieces = test::odd_pieces();
  const auto values = test::gradient(pieces, 8);
  const auto run = [&](const std::string& settings) {
    const auto codec = test::codec_maker(settings)(pieces);
    std::vector<std::byte> bytes(codec->most_bytes());
    bytes.resize(codec->encode(values, test::step_of(1), bytes));
    std::vector<float> said(values.size());
    codec->decode(bytes, said);
    codec->add(bytes, 0.3f, said);
    return std::pair(bytes, said);
  };
  for (const std::string& settings : test::codec_cases()) {
    const auto here = run(settings);
    hwy::SetSupportedTargetsForTest(HWY_SSE4);
    hwy::GetChosenTarget().Update(HWY_SSE4);
    const auto there = run(settings);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(here, there) << settings;
  }
}

}  // namespace
}  // namespace echelon::codecs
