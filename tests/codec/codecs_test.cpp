// What makes each codec itself, and how its settings are read.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(OneBit, HasMeansForEachRow) {
  const auto codec = codec_maker("name = 'one_bit'\nerror_feedback = false")({{.size = 6, .rows = 2}});
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

TEST(Fixed16, IsPreciseToItsLastBitAndSaturates) {
  const auto codec = codec_maker("name = 'fixed16'\nfraction_bits = 10")({{.size = 5}});
  const auto said = coded(*codec, {0.5f, -1.25f, 0.3f, 100.0f, -100.0f}).said;
  EXPECT_EQ(said[0], 0.5f);
  EXPECT_EQ(said[1], -1.25f);
  EXPECT_NEAR(said[2], 0.3f, 0x1p-10);
  EXPECT_EQ(said[3], 32767 * 0x1p-10f);
  EXPECT_EQ(said[4], -32);
}

TEST(Flexpoint, IsPreciseRelativeToTheLargestOfEachPiece) {
  const std::vector<CodecPiece> pieces{{.size = 1000}, {.size = 1000}, {.size = 2}};
  auto values = test::gradient(pieces, 1);
  for (std::size_t i = 1000; i < 2000; ++i) values[i] *= 1e-20f;
  values[2000] = std::nextafter(1.0f, 0.0f), values[2001] = -1;
  const auto said = coded(*codec_maker("name = 'flexpoint'")(pieces), values).said;
  for (const std::size_t begin : {0u, 1000u}) {
    float largest = 0;
    for (std::size_t i = 0; i < 1000; ++i) largest = std::max(largest, std::abs(values[begin + i]));
    for (std::size_t i = 0; i < 1000; ++i) ASSERT_NEAR(said[begin + i], values[begin + i], largest * 0x1p-15f) << i;
  }
  EXPECT_EQ(said[2001], -1);
}

TEST(Dorefa, HasSoManyLevelsBetweenPlusAndMinusTheLargest) {
  const std::vector<CodecPiece> pieces{{.size = 2000}};
  const auto values = test::gradient(pieces, 1);
  const auto [bytes, said] = coded(*codec_maker("name = 'dorefa'\nbits = 3")(pieces), values);
  float largest = 0;
  for (const float x : values) largest = std::max(largest, std::abs(x));
  for (const float x : said) {
    const float level = (x / largest + 1) / 2 * 7;
    ASSERT_NEAR(level, std::round(level), 1e-4);
    ASSERT_LE(std::abs(x), largest * 1.0001f);
  }
  EXPECT_EQ(bytes, 4 + 2016u * 3 / 8);  // whole groups of 32
}

TEST(TernGrad, SaysPlusOrMinusOneScaleOrNothing) {
  const std::vector<CodecPiece> pieces{{.size = 4000}, {.size = 1000}};
  const auto values = test::gradient(pieces, 1);
  const auto [bytes, said] = coded(*codec_maker("name = 'terngrad'\nclip_sigmas = 2")(pieces), values);
  EXPECT_EQ(bytes, 4 + 800u + 4 + 205u);  // five a byte, whole groups of 32
  std::size_t begin = 0;
  for (const CodecPiece& piece : pieces) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < piece.size; ++i)
      sum += values[begin + i], squares += values[begin + i] * values[begin + i];
    const double n = static_cast<double>(piece.size), limit = 2 * std::sqrt(squares / n - sum * sum / n / n);
    std::size_t sent = 0;
    for (std::size_t i = 0; i < piece.size; ++i) {
      const float x = said[begin + i];
      if (x == 0) continue;
      ++sent;
      ASSERT_NEAR(std::abs(x), limit, 1e-4 * limit);
      ASSERT_GT(x * values[begin + i], 0);  // never the other sign
    }
    EXPECT_GT(sent, 0u);
    EXPECT_LT(sent, piece.size);
    begin += piece.size;
  }
}

TEST(Qsgd, SaysMultiplesOfABucketsLengthOverItsLevels) {
  constexpr std::size_t bucket = 512, levels = 4;
  const std::vector<CodecPiece> pieces{{.size = 2 * bucket}};
  const auto values = test::gradient(pieces, 1);
  const auto said = coded(*codec_maker("name = 'qsgd'\nlevels = 4\nbucket = 512")(pieces), values).said;
  for (std::size_t begin = 0; begin < said.size(); begin += bucket) {
    double squares = 0, most = 0;
    for (std::size_t i = begin; i < begin + bucket; ++i) squares += static_cast<double>(values[i]) * values[i];
    const double unit = std::sqrt(squares) / levels;
    for (std::size_t i = begin; i < begin + bucket; ++i) {
      const double times = std::abs(said[i]) / unit;
      ASSERT_NEAR(times, std::round(times), 1e-4) << i;
      most = std::max(most, times);
    }
    EXPECT_GE(most, 1);
  }
}

TEST(Qsgd, EntropyCodingMakesItsBytesFewer) {
  const std::vector<CodecPiece> pieces{{.size = 200000}};
  const auto values = test::gradient(pieces, 1);
  const auto plain = coded(*codec_maker("name = 'qsgd'")(pieces), values);
  const auto fewer = coded(*codec_maker("name = 'qsgd'\nentropy = true")(pieces), values);
  EXPECT_EQ(plain.said, fewer.said);
  EXPECT_LT(static_cast<double>(fewer.bytes), 0.6 * static_cast<double>(plain.bytes));
}

TEST(TwoBit, SaysTheThresholdWhereItIsReached) {
  const auto codec = codec_maker("name = 'two_bit'\nthreshold = 0.5\nlayer_scale = 'none'")({{.size = 6}});
  const std::vector<float> values{0.6f, 0.4f, -0.5f, -0.2f, 0, 1.7f};
  const auto first = coded(*codec, values);
  EXPECT_EQ(first.said, (std::vector<float>{0.5f, 0, -0.5f, 0, 0, 0.5f}));
  EXPECT_EQ(first.bytes, 8u);  // a group of 32 numbers, two bits each
  EXPECT_EQ(coded(*codec, values).said, (std::vector<float>{0.5f, 0.5f, -0.5f, 0, 0, 0.5f}));  // 0.4 twice is enough
}

TEST(TwoBit, ItsThresholdIsInUnitsOfTheLayersSize) {
  const std::vector<CodecPiece> pieces{{.size = 1000}};
  const auto codec = codec_maker("name = 'two_bit'\nerror_feedback = false")(pieces);
  std::vector<float> values = test::gradient(pieces, 1);
  const auto small = coded(*codec, values).said;
  for (float& v : values) v *= 1024;
  const auto large = coded(*codec, values).said;
  EXPECT_GT(std::ranges::count_if(small, [](float v) { return v != 0; }), 0);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(large[i], 1024 * small[i]) << i;
}

TEST(Strom, SendsPlaceAndSignOfWhatHasReachedTheThreshold) {
  const auto codec = codec_maker("name = 'strom'\nthreshold = 2\nlayer_scale = 'none'")({{.size = 70000}});
  std::vector<float> values(70000, 0.9f);
  values[3] = -2.5f, values[66666] = 7;
  const auto first = coded(*codec, values);
  EXPECT_EQ(first.bytes, 3 * 2u + 2 * 2u);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(first.said[i], i == 3 ? -2 : i == 66666 ? 2 : 0) << i;
  std::ranges::fill(values, 0.0f);
  EXPECT_EQ(coded(*codec, values).said[66666], 2);  // 5 were left
  EXPECT_EQ(coded(*codec, values).said[66666], 2);
  EXPECT_EQ(coded(*codec, values).said[66666], 0);
}

TEST(RandomK, DrawsOtherPlacesEveryTimeAndSendsNoPlaces) {
  const std::vector<CodecPiece> pieces{{.size = 10000}};
  const std::vector<float> ones(10000, 1.0f);
  const auto codec = codec_maker("name = 'random_k'\nshare = 0.05")(pieces);
  const auto a = coded(*codec, ones, test::step_of(0)), b = coded(*codec, ones, test::step_of(1));
  EXPECT_EQ(a.bytes, 8 + 500 * 4u);
  EXPECT_EQ(std::ranges::count(a.said, 20.0f), 500);
  EXPECT_EQ(std::ranges::count(a.said, 0.0f), 9500);
  EXPECT_NE(a.said, b.said);
}

TEST(LowRank, IsExactForMatricesOfThatRankAndNearsTheBestForOthers) {
  constexpr std::size_t rows = 40, columns = 60;
  const std::vector<CodecPiece> pieces{{.size = rows * columns, .rows = rows}, {.size = 7}};
  const auto codec = codec_maker("name = 'low_rank'\nrank = 2\nerror_feedback = false")(pieces);
  EXPECT_EQ(codec->most_bytes(), (2 * (rows + columns) + 7) * 4);
  const Stream random({.seed = 2});
  std::vector<float> m(rows * columns + 7);
  // Rank two, plus a little of rank three: the best approximation of rank two misses that little.
  double third = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const float x = random.normal(i) * random.normal(1000 + j), y = random.normal(2000 + i) * random.normal(3000 + j);
      const float z = 0.05f * random.normal(4000 + i) * random.normal(5000 + j);
      m[i * columns + j] = 3 * x + y + z;
      third += z * z;
    }
  for (std::size_t i = 0; i < 7; ++i) m[rows * columns + i] = static_cast<float>(i);
  double error = 0;
  for (int call = 0; call < 20; ++call) {  // every call goes on where the last one ended
    const auto said = coded(*codec, m).said;
    error = 0;
    for (std::size_t i = 0; i < rows * columns; ++i) error += (said[i] - m[i]) * (said[i] - m[i]);
    for (std::size_t i = rows * columns; i < m.size(); ++i) ASSERT_EQ(said[i], m[i]);
  }
  EXPECT_LT(error, 1.01 * third);
  EXPECT_GT(error, 0);
}

TEST(LowRank, FindsItsDirectionsAgainAfterZeros) {
  const auto codec = codec_maker("name = 'low_rank'\nrank = 1\nerror_feedback = false")({{.size = 100, .rows = 10}});
  std::vector<float> m(100, 0.0f);
  coded(*codec, m);
  coded(*codec, m);
  std::ranges::fill(m, 2.0f);  // rank one
  for (const float x : coded(*codec, m).said) ASSERT_NEAR(x, 2, 1e-5);
}

TEST(LayerScale, GivesEveryLayerTheSameChance) {
  const std::vector<CodecPiece> pieces{{.size = 1000}, {.size = 1000}};
  auto values = test::gradient({{.size = 1000}}, 1);
  for (std::size_t i = 0; i < 1000; ++i) values.push_back(values[i] * 1024);
  const auto sent_in_first = [&](const char* settings) {
    const auto said = coded(*codec_maker(settings)(pieces), values).said;
    return 1000 - std::count(said.begin(), said.begin() + 1000, 0.0f);
  };
  EXPECT_EQ(sent_in_first("name = 'top_k'\nshare = 0.1\nlayer_scale = 'every_call'"), 100);
  EXPECT_EQ(sent_in_first("name = 'top_k'\nshare = 0.1\nlayer_scale = 'none'"), 0);
}

TEST(LayerScale, TakesThresholdsBeyondTheRangeOfFloats) {
  for (const std::string name : {"two_bit", "strom"})
    for (const bool small : {true, false}) {
      const auto codec =
          codec_maker("name = '" + name + "'\nthreshold = " + (small ? "1e-30" : "1e30"))({{.size = 1000}});
      auto values = test::gradient({{.size = 1000}}, 1);
      for (float& x : values) x *= small ? 1e-20f : 1e20f;
      for (int step = 0; step < 3; ++step)
        for (const float x : coded(*codec, values).said) ASSERT_TRUE(std::isfinite(x)) << name;
    }
}

// Numbers that stay in error feedback grow; the threshold must not grow with them.
TEST(LayerScale, OfTheFirstCallLetsSmallNumbersThroughInTheEnd) {
  const std::vector<CodecPiece> pieces{{.size = 1000}};
  const auto codec = codec_maker("name = 'strom'\nthreshold = 3")(pieces);
  std::vector<float> zeros(1000, 0.0f), values(1000, 1.0f), sum(1000, 0.0f);
  coded(*codec, zeros);  // says nothing of how large numbers are
  for (int step = 0; step < 30; ++step) {
    const auto said = coded(*codec, values).said;
    for (std::size_t i = 0; i < 1000; ++i) sum[i] += said[i];
  }
  for (const float x : sum) ASSERT_NEAR(x, 30, 3.01);
}

TEST(Dgc, SendsAtMostAHundredthOfTheBytes) {
  const std::vector<CodecPiece> pieces{{.size = 784 * 1024, .rows = 1024},  {.size = 1024},
                                       {.size = 1024 * 1024, .rows = 1024}, {.size = 1024},
                                       {.size = 10240, .rows = 10},         {.size = 10}};
  const auto codec = codec_maker("name = 'dgc'")(pieces);
  for (int step = 0; step < 3; ++step) {
    const auto [bytes, said] =
        coded(*codec, test::gradient(pieces, static_cast<std::uint32_t>(step)), test::step_of(step));
    EXPECT_LE(static_cast<double>(bytes), 0.01 * 4 * static_cast<double>(test::total(pieces)));
    EXPECT_LE(static_cast<double>(bytes), codec->usual_bytes());
    EXPECT_GT(bytes, 1000u);
  }
}

// With momentum at the sender, what arrives in all is what SGD with momentum would have moved by.
TEST(Dgc, MovesAsMomentumSgdOverTime) {
  constexpr std::size_t n = 50;
  const std::vector<CodecPiece> pieces{{.size = n}};
  const auto codec =
      codec_maker("name = 'dgc'\nshare = 0.1\nwarmup_epochs = 0\nmasking = false\nmomentum = 0.8")(pieces);
  std::vector<double> dense(n), velocity(n), sparse(n);
  std::vector<float> zeros(n);
  for (int step = 0; step < 400; ++step) {
    const auto g = step < 100 ? test::gradient(pieces, static_cast<std::uint32_t>(step)) : zeros;  // then it runs dry
    const auto said = coded(*codec, g, test::step_of(step)).said;
    EXPECT_LE(n - std::ranges::count(said, 0.0f), 5);
    for (std::size_t i = 0; i < n; ++i) {
      velocity[i] = 0.8 * velocity[i] + g[i];
      dense[i] += velocity[i];
      sparse[i] += said[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(sparse[i], dense[i], 1e-5) << i;
}

TEST(Dgc, StopsTheVelocityOfWhatWasSent) {
  const auto run = [](const char* masking) {
    const auto codec =
        codec_maker(std::string("name = 'dgc'\nshare = 0.5\nwarmup_epochs = 0\nmomentum = 0.5\nmasking = ") +
                    masking)({{.size = 2}});
    coded(*codec, {8, 1});  // 8 is sent; 1 stays, with its velocity
    return coded(*codec, {0, 0}).said;
  };
  EXPECT_EQ(run("true"), (std::vector<float>{0, 1.5f}));
  EXPECT_EQ(run("false"), (std::vector<float>{4, 0}));
}

TEST(Dgc, ClipsTheGradientByItsNorm) {
  const auto codec = codec_maker("name = 'dgc'\nshare = 1\nwarmup_epochs = 0\nclip = 1")({{.size = 2}});
  const auto said = coded(*codec, {30, 40}).said;
  EXPECT_FLOAT_EQ(said[0], 0.6f);
  EXPECT_FLOAT_EQ(said[1], 0.8f);
}

TEST(ReadCodec, RefusesWrappersThatMakeNoSense) {
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'none'\nmomentum = 0.9"); }), "use the optimizer's"));
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'dgc'\nerror_feedback = true"); }), "momentum already"));
  EXPECT_TRUE(says(complaint_of([] { codec_maker("name = 'top_k'\nmasking = true"); }), "codec.masking"));
}

TEST(ReadCodec, KnowsEveryCodecOfTheTable) {
  EXPECT_EQ(codec_names().size(), 16u);
  for (const std::string& name : codec_names()) {
    const auto tested = [&](const std::string& settings) { return says(settings, "'" + name + "'"); };
    EXPECT_TRUE(std::ranges::any_of(test::codec_cases(), tested)) << name;
  }
}

}  // namespace
}  // namespace echelon
