// What makes each codec itself, and how its settings are read.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/codec/cases.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using test::codec_maker;
using test::complaint_of;
using test::says;

struct Coded {
  std::size_t bytes;
  std::vector<float> said;
};

Coded coded(Codec& codec, const std::vector<float>& values, const CodecStep& step = test::step_of(0)) {
  std::vector<std::byte> out(codec.most_bytes());
  const std::size_t bytes = codec.encode(values, step, out);
  std::vector<float> said(values.size());
  codec.decode(std::span(out).first(bytes), said);
  return {bytes, said};
}

TEST(OneBit, SaysTheMeanOnEitherSideOfZero) {
  const auto codec = codec_maker("name = 'one_bit'\nerror_feedback = false")({{.size = 4}, {.size = 3}});
  const auto [bytes, said] = coded(*codec, {1, 3, -2, -6, 5, 7, 9});
  EXPECT_EQ(said, (std::vector<float>{2, 2, -4, -4, 7, 7, 7}));
  EXPECT_EQ(bytes, 9u + 9u);
}

TEST(OneBit, HasMeansForEachRowIfAsked) {
  const auto codec = codec_maker("name = 'one_bit'\nper = 'row'\nerror_feedback = false")({{.size = 6, .rows = 2}});
  EXPECT_EQ(coded(*codec, {1, 3, -2, 10, -20, 30}).said, (std::vector<float>{2, 2, -2, 20, -20, 20}));
}

TEST(TopK, SendsTheLargestAndExactlyThatMany) {
  const std::vector<CodecPiece> pieces{{.size = 50000}};
  const auto values = test::gradient(pieces, 1);
  const auto codec = codec_maker("name = 'top_k'\nshare = 0.02\nerror_feedback = false")(pieces);
  const auto [bytes, said] = coded(*codec, values);
  EXPECT_EQ(bytes, 2 * 2 + 1000u * 6);
  std::vector<float> sizes;
  for (const float x : values) sizes.push_back(std::abs(x));
  std::ranges::nth_element(sizes, sizes.begin() + 999, std::greater());
  std::size_t sent = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(said[i], std::abs(values[i]) >= sizes[999] ? values[i] : 0) << i;
    sent += said[i] != 0;
  }
  EXPECT_EQ(sent, 1000u);
}

TEST(TopK, ChoosesInEachParameterIfAsked) {
  const std::vector<CodecPiece> pieces{{.size = 100}, {.size = 100}};
  std::vector<float> values(200);
  for (std::size_t i = 0; i < 200; ++i) values[i] = (i < 100 ? 1.0f : 1000.0f) * static_cast<float>(1 + i % 100);
  const auto sent = [&](const char* settings) {
    std::vector<std::size_t> places;
    const auto said = coded(*codec_maker(settings)(pieces), values).said;
    for (std::size_t i = 0; i < 200; ++i)
      if (said[i] != 0) places.push_back(i);
    return places;
  };
  EXPECT_EQ(sent("name = 'top_k'\nshare = 0.01\nlayerwise = true"), (std::vector<std::size_t>{99, 199}));
  EXPECT_EQ(sent("name = 'top_k'\nshare = 0.01\nlayerwise = false"), (std::vector<std::size_t>{198, 199}));
}

TEST(TopK, SendsWhatWasLeftOutUntilItIsLargeEnough) {
  const auto codec = codec_maker("name = 'top_k'\nshare = 0.1")({{.size = 10}});
  std::vector<float> values(10, 0.0f);
  values[3] = 1, values[8] = 0.4f;
  EXPECT_EQ(coded(*codec, values).said[8], 0);
  EXPECT_EQ(coded(*codec, values).said[8], 0);
  values[3] = 0;
  EXPECT_FLOAT_EQ(coded(*codec, values).said[8], 1.2f);
}

TEST(TopK, BeginsWithALargeShareAndEndsWithASmallOne) {
  const std::vector<CodecPiece> pieces{{.size = 100000}};
  const auto codec = codec_maker("name = 'top_k'\nshare = 0.001\nwarmup_epochs = 4\nerror_feedback = false")(pieces);
  const auto values = test::gradient(pieces, 1);
  std::vector<double> shares;
  for (const double epoch : {0.0, 0.9, 1.0, 2.0, 3.0, 4.0, 50.0})
    shares.push_back(
        static_cast<double>(100000 - std::ranges::count(coded(*codec, values, test::step_of(0, epoch)).said, 0.0f)) /
        100000);
  const std::vector<double> wanted{0.25, 0.25, 0.0629, 0.0158, 0.00398, 0.001, 0.001};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(shares[i], wanted[i], 0.0002) << i;
}

TEST(ReadCodec, NamesEveryProblem) {
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'onebit'"); }), "one_bit"));
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'top_k'\nshair = 0.1"); }), "share"));
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'top_k'\nshare = 2"); }), "codec.share"));
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'none'\nerror_feedback = true"); }), "leaves nothing out"));
}

}  // namespace
}  // namespace echelon
