// 16-bit floats: every half there is, and the roundings of every kind of float, as the readable twin says.

#include "codec/kernels/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace echelon::codecs {
namespace {

std::vector<std::uint16_t> every_half() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Floats of all exponents, those half way between two halves, and their neighbours.
std::vector<float> telling_floats() {
  std::vector<float> x;
  const Stream random({.seed = 1});
  for (std::uint32_t i = 0; i < 200000; ++i) x.push_back(std::bit_cast<float>(random.bits(i)));
  for (std::uint32_t half = 0; half < 65536; ++half)
    for (const std::uint32_t base :
         {half << 16, std::bit_cast<std::uint32_t>(ref_from_fp16(static_cast<std::uint16_t>(half)))})
      for (const std::uint32_t rest : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u})
        x.push_back(std::bit_cast<float>(base + rest));
  return x;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

TEST(Half, ReadsEveryHalf) {
  const auto halves = every_half();
  const auto* bytes = reinterpret_cast<const std::byte*>(halves.data());
  std::vector<float> out(halves.size());
  from_fp16(bytes, out);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_TRUE(same(out[i], ref_from_fp16(halves[i]))) << i;
  from_bf16(bytes, out);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_TRUE(same(out[i], ref_from_bf16(halves[i]))) << i;
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  const auto x = telling_floats();
  std::vector<std::uint16_t> out(x.size());
  to_fp16(x, reinterpret_cast<std::byte*>(out.data()));
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_TRUE(std::isnan(x[i]) ? std::isnan(ref_from_fp16(out[i])) : out[i] == ref_to_fp16(x[i])) << x[i];
  to_bf16(x, reinterpret_cast<std::byte*>(out.data()));
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_TRUE(std::isnan(x[i]) ? std::isnan(ref_from_bf16(out[i])) : out[i] == ref_to_bf16(x[i])) << x[i];
}

TEST(Half, TheTwinKnowsAFewByHeart) {
  EXPECT_EQ(ref_to_fp16(1), 0x3C00);
  EXPECT_EQ(ref_to_fp16(-2), 0xC000);
  EXPECT_EQ(ref_to_fp16(65504), 0x7BFF);
  EXPECT_EQ(ref_to_fp16(65520), 0x7C00);
  EXPECT_EQ(ref_to_fp16(6e-8f), 0x0001);
  EXPECT_EQ(ref_to_fp16(1e-8f), 0x0000);
  EXPECT_EQ(ref_to_fp16(1 + 0x1p-11f), 0x3C00);      // a tie: to even
  EXPECT_EQ(ref_to_fp16(1 + 3 * 0x1p-11f), 0x3C02);  // a tie: to even, upwards
  EXPECT_EQ(ref_to_bf16(1), 0x3F80);
  EXPECT_EQ(ref_to_bf16(1 + 0x1p-8f), 0x3F80);
  EXPECT_EQ(ref_to_bf16(1 + 3 * 0x1p-8f), 0x3F82);
}

TEST(Half, AnyCountAndAnyAlignment) {
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<float> x(n), out(n + 1, 5.0f);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) - 3;
    std::vector<std::byte> bytes(2 * n + 2, std::byte{0xEE});
    to_fp16(x, bytes.data() + 1);
    EXPECT_EQ(bytes.front(), std::byte{0xEE});
    EXPECT_EQ(bytes.back(), std::byte{0xEE});
    add_fp16(bytes.data() + 1, 2, std::span(out).first(n));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], 5 + 2 * x[i]);
    EXPECT_EQ(out[n], 5.0f);
  }
}

}  // namespace
}  // namespace echelon::codecs
