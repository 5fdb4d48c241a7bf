// What the adaptive threshold sends, against a sort, and against the wrapper whose work it does itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codec/codecs.h"
#include "tests/codec/cases.h"

namespace echelon {
namespace {

using test::codec_maker;

std::vector<float> said_of(Codec& codec, const std::vector<float>& values) {
  std::vector<std::byte> out(codec.most_bytes());
  const std::size_t bytes = codec.encode(values, test::step_of(0), out);
  std::vector<float> said(values.size());
  codec.decode(std::span(out).first(bytes), said);
  return said;
}

TEST(Adaptive, SendsTheSameShareOfEitherSideAsItsMean) {
  const std::vector<CodecPiece> pieces{{.size = 20000}};
  auto values = test::gradient(pieces, 1);
  for (float& x : values)
    if (x > 0) x *= 1000;  // a common threshold would send positive ones only
  const auto codec =
      codec_maker("name = 'adaptive'\nshare = 0.05\nlayer_scale = 'none'\nerror_feedback = false")(pieces);
  const auto said = said_of(*codec, values);
  for (const float side : {1.0f, -1.0f}) {
    std::vector<float> sizes;
    for (const float x : values)
      if (x * side > 0) sizes.push_back(x * side);
    std::ranges::sort(sizes, std::greater());
    const auto count = static_cast<std::size_t>(std::ceil(0.05 * static_cast<double>(sizes.size())));
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += sizes[i] / static_cast<double>(count);
    std::size_t sent = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (said[i] * side <= 0) continue;
      ++sent;
      ASSERT_NEAR(said[i] * side, mean, 1e-5 * mean);
      ASSERT_GE(values[i] * side, sizes[count - 1]);
    }
    EXPECT_EQ(sent, count);
  }
}

// A codec that measures by layers itself says what it says inside the wrapper that divides them.
TEST(Adaptive, MeasuresByLayersAsTheWrapperDoes) {
  for (const auto& pieces : {test::odd_pieces(), test::few_pieces(), {{.size = 300000}, {.size = 90000}, {.size = 3}}})
    for (const std::string share : {"0.001", "0.01", "0.3", "1.0"}) {
      const std::string settings = "name = 'adaptive'\nerror_feedback = false\nshare = " + share;
      const auto itself = codec_maker(settings)(pieces);
      const auto wrapped = codecs::layer_scale(codec_maker(settings + "\nlayer_scale = 'none'")(pieces), pieces, false);
      auto left = test::gradient(pieces, 3), left_of_wrapped = left;
      const auto more = test::gradient(pieces, 4);
      std::vector<std::byte> bytes(itself->most_bytes()), bytes_of_wrapped(wrapped->most_bytes());
      ASSERT_EQ(bytes.size(), bytes_of_wrapped.size());
      for (int step = 0; step < 3; ++step) {
        bytes.resize(itself->encode_sum(left, more, test::step_of(step), bytes));
        bytes_of_wrapped.resize(wrapped->encode_sum(left_of_wrapped, more, test::step_of(step), bytes_of_wrapped));
        ASSERT_EQ(bytes, bytes_of_wrapped) << share;
        ASSERT_EQ(left, left_of_wrapped) << share;
        bytes.resize(itself->most_bytes());
        bytes_of_wrapped.resize(itself->most_bytes());
      }
    }
}

// What is looked at first says nothing of the rest, or the opposite.
TEST(Adaptive, IsNotMisledByTheNumbersItLooksAtFirst) {
  for (const bool large_first : {true, false}) {
    std::vector<float> values(200000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          (i % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(i + 1) * ((i % 1024 < 16) == large_first ? 1 : 1e-9f);
    const auto codec = codec_maker("name = 'adaptive'\nshare = 0.05\nlayer_scale = 'none'\nerror_feedback = false")(
        {{.size = values.size()}});
    const auto said = said_of(*codec, values);
    std::vector<float> sizes;
    for (std::size_t i = 0; i < values.size(); i += 2) sizes.push_back(values[i]);
    std::ranges::sort(sizes, std::greater());
    for (std::size_t i = 0; i < values.size(); i += 2) ASSERT_EQ(said[i] > 0, values[i] >= sizes[4999]) << i;
    EXPECT_EQ(std::ranges::count_if(said, [](float x) { return x < 0; }), 5000);
  }
}

}  // namespace
}  // namespace echelon
