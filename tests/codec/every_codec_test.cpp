// What holds for every codec, with every wrapper.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tests/codec/cases.h"
#include "tests/support/allocations.h"

namespace echelon {
namespace {

using test::codec_maker;
using Bytes = std::vector<std::byte>;

Bytes encoded(Codec& codec, std::span<const float> values, const CodecStep& step) {
  Bytes out(codec.most_bytes());
  out.resize(codec.encode(values, step, out));
  return out;
}

std::vector<float> decoded(const Codec& codec, const Bytes& bytes, std::size_t n) {
  std::vector<float> out(n, 77.0f);
  codec.decode(bytes, out);
  return out;
}

std::vector<std::byte> state_of(Codec& codec) {
  std::vector<std::byte> all;
  for (const StateSpan& state : codec.state()) all.insert(all.end(), state.bytes.begin(), state.bytes.end());
  return all;
}

class EveryCodec : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Codec> make(const std::vector<CodecPiece>& pieces = test::odd_pieces()) const {
    return codec_maker(GetParam())(pieces);
  }
  const std::vector<CodecPiece> pieces_ = test::odd_pieces();
  const std::size_t n_ = test::total(pieces_);
};

TEST_P(EveryCodec, WritesNoMoreThanItSaysAndAsMuchAsItExpects) {
  const auto codec = make();
  for (int step = 0; step < 5; ++step) {
    Bytes out(codec->most_bytes() + 64, std::byte{0xA5});
    const std::size_t written =
        codec->encode(test::gradient(pieces_, static_cast<std::uint32_t>(step)), test::step_of(step), out);
    ASSERT_LE(written, codec->most_bytes());
    for (std::size_t i = codec->most_bytes(); i < out.size(); ++i) ASSERT_EQ(out[i], std::byte{0xA5});
    if (codec->usual_bytes() == static_cast<double>(codec->most_bytes())) {
      EXPECT_EQ(written, codec->most_bytes());
    }
  }
}

TEST_P(EveryCodec, AddsWhatItDecodes) {
  const auto codec = make();
  const Bytes bytes = encoded(*codec, test::gradient(pieces_, 3), test::step_of(0));
  const std::vector<float> said = decoded(*codec, bytes, n_), before = test::gradient(pieces_, 4);
  std::vector<float> sum = before;
  codec->add(bytes, -0.5f, sum);
  float largest = 0;
  for (const float x : said) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < n_; ++i) ASSERT_NEAR(sum[i], before[i] - 0.5f * said[i], 2e-6f * (largest + 1)) << i;
  EXPECT_TRUE(std::ranges::any_of(said, [](float x) { return x != 0; }));
}

TEST_P(EveryCodec, KeepsTheRestOfWhatItEncodes) {
  const auto codec = make(), other = make();
  const std::vector<float> values = test::gradient(pieces_, 3);
  std::vector<float> rest = values;
  Bytes bytes(codec->most_bytes());
  bytes.resize(codec->encode_rest(rest, test::step_of(0), bytes));
  EXPECT_EQ(bytes, encoded(*other, values, test::step_of(0)));
  const std::vector<float> said = decoded(*codec, bytes, n_);
  for (std::size_t i = 0; i < n_; ++i) ASSERT_NEAR(rest[i], values[i] - said[i], 1e-5f * (1 + std::abs(said[i]))) << i;
}

// In one go, or adding first: the same bytes, the same rest, whatever was remembered before.
TEST_P(EveryCodec, EncodesASumAsItWouldWhatWasAddedBefore) {
  const auto codec = make(), other = make();
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> more = test::gradient(pieces_, static_cast<std::uint32_t>(10 + step));
    std::vector<float> at_once = test::gradient(pieces_, static_cast<std::uint32_t>(step)), before = at_once;
    for (std::size_t i = 0; i < n_; ++i) before[i] += more[i];
    Bytes a(codec->most_bytes()), b(codec->most_bytes());
    a.resize(codec->encode_sum(at_once, more, test::step_of(step), a));
    b.resize(other->encode_rest(before, test::step_of(step), b));
    ASSERT_EQ(a, b);
    ASSERT_EQ(at_once, before);
    ASSERT_EQ(state_of(*codec), state_of(*other));
  }
}

TEST_P(EveryCodec, NamesEveryNumberItSpeaksOfInOrderIfItIsSparse) {
  const auto codec = make();
  if (!codec->traits().sparse) return;
  const Bytes bytes = encoded(*codec, test::gradient(pieces_, 3), test::step_of(0));
  std::vector<float> said(n_);
  std::size_t least = 0;
  codec->each_sent(bytes, [&](std::size_t i, float value) {
    ASSERT_GE(i, least);
    ASSERT_LT(i, n_);
    said[i] = value;
    least = i + 1;
  });
  EXPECT_EQ(said, decoded(*codec, bytes, n_));
}

TEST_P(EveryCodec, ClearsEverythingItSpeaksOf) {
  const auto codec = make();
  const Bytes bytes = encoded(*codec, test::gradient(pieces_, 3), test::step_of(0));
  const std::vector<float> said = decoded(*codec, bytes, n_);
  std::vector<float> ones(n_, 1.0f);
  codec->clear_sent(bytes, ones);
  for (std::size_t i = 0; i < n_; ++i) {
    if (said[i] != 0 || !codec->traits().sparse) {
      ASSERT_EQ(ones[i], 0) << i;
    }
  }
  EXPECT_EQ(codec->traits().sparse, std::ranges::count(ones, 1.0f) > static_cast<std::ptrdiff_t>(n_ / 2));
}

TEST_P(EveryCodec, IsDeterministic) {
  const auto a = make(), b = make();
  for (int step = 0; step < 4; ++step) {
    const auto values = test::gradient(pieces_, static_cast<std::uint32_t>(step));
    ASSERT_EQ(encoded(*a, values, test::step_of(step)), encoded(*b, values, test::step_of(step)));
  }
}

TEST_P(EveryCodec, GoesOnFromItsStateAsIfNothingHadHappened) {
  const auto a = make(), b = make();
  for (int step = 0; step < 3; ++step)
    encoded(*a, test::gradient(pieces_, static_cast<std::uint32_t>(step)), test::step_of(step));
  const auto from = a->state(), to = b->state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(from[i].name, to[i].name);
    ASSERT_EQ(from[i].bytes.size(), to[i].bytes.size());
    std::ranges::copy(from[i].bytes, to[i].bytes.begin());
  }
  for (int step = 3; step < 6; ++step) {
    const auto values = test::gradient(pieces_, static_cast<std::uint32_t>(step));
    ASSERT_EQ(encoded(*a, values, test::step_of(step)), encoded(*b, values, test::step_of(step)));
    ASSERT_EQ(state_of(*a), state_of(*b));
  }
}

TEST_P(EveryCodec, LosesNothingOverTimeWithErrorFeedback) {
  const auto codec = make();
  const auto states = codec->state();
  const auto residual = std::ranges::find(states, "residual", &StateSpan::name);
  if (residual == states.end() || std::ranges::count(states, "velocity", &StateSpan::name) > 0)
    return;  // it has no error feedback, or momentum besides
  std::vector<double> wanted(n_), got(n_);
  for (int step = 0; step < 30; ++step) {
    const auto values = test::gradient(pieces_, static_cast<std::uint32_t>(step));
    const auto said = decoded(*codec, encoded(*codec, values, test::step_of(step)), n_);
    for (std::size_t i = 0; i < n_; ++i) wanted[i] += values[i], got[i] += said[i];
  }
  const auto* left = reinterpret_cast<const float*>(residual->bytes.data());
  ASSERT_EQ(residual->bytes.size(), n_ * sizeof(float));
  for (std::size_t i = 0; i < n_; ++i) ASSERT_NEAR(got[i] + left[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
}

TEST_P(EveryCodec, GivesBackTheBitsIfItSaysSo) {
  const auto codec = make();
  if (!codec->traits().lossless) return;
  const auto values = test::gradient(pieces_, 5);
  const auto said = decoded(*codec, encoded(*codec, values, test::step_of(0)), n_);
  EXPECT_EQ(std::memcmp(said.data(), values.data(), n_ * sizeof(float)), 0);
}

// Over many calls the mean of what is decoded nears the input: within six of its own standard errors, everywhere.
TEST_P(EveryCodec, IsUnbiasedIfItSaysSo) {
  const auto pieces = test::few_pieces();
  const auto codec = make(pieces);
  if (!codec->traits().unbiased) return;
  const auto values = test::gradient(pieces, 6);
  const std::size_t n = values.size();
  constexpr int calls = 20000;
  std::vector<double> sum(n), squares(n);
  std::vector<float> said(n), least(n, INFINITY), most(n, -INFINITY);
  Bytes bytes(codec->most_bytes());
  for (int call = 0; call < calls; ++call) {
    codec->decode(std::span(bytes).first(codec->encode(values, test::step_of(call), bytes)), said);
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] += said[i], squares[i] += static_cast<double>(said[i]) * said[i];
      least[i] = std::min(least[i], said[i]), most[i] = std::max(most[i], said[i]);
    }
  }
  // What happens less than once in a thousand calls may not have happened: that much of a step between levels is
  // allowed.
  float step = 0, largest = 0;
  for (std::size_t i = 0; i < n; ++i) step = std::max(step, most[i] - least[i]), largest = std::max(largest, most[i]);
  for (std::size_t i = 0; i < n; ++i) {
    const double mean = sum[i] / calls, variance = std::max(0.0, squares[i] / calls - mean * mean);
    ASSERT_NEAR(mean, values[i], 6 * std::sqrt(variance / calls) + 1e-3 * step + 1e-6 * largest) << i;
  }
}

TEST_P(EveryCodec, AllocatesNothingOnceItHasRun) {
  if (!test::allocations_are_counted()) GTEST_SKIP() << "sanitizers count their own";
  const auto codec = make();
  const auto values = test::gradient(pieces_, 1);
  std::vector<float> out(n_);
  Bytes bytes(codec->most_bytes());
  const auto round = [&](int step) {
    const std::size_t written = codec->encode(values, test::step_of(step), bytes);
    codec->decode(std::span(bytes).first(written), out);
    codec->add(std::span(bytes).first(written), 0.5f, out);
    codec->clear_sent(std::span(bytes).first(written), out);
  };
  round(0);
  const std::int64_t before = test::allocations();
  for (int step = 1; step < 5; ++step) round(step);
  EXPECT_EQ(test::allocations(), before);
}

TEST_P(EveryCodec, RefusesBytesThatAreTooFewOrTooMany) {
  const auto pieces = test::few_pieces();
  const auto codec = make(pieces);
  const auto values = test::gradient(pieces, 2);
  Bytes bytes = encoded(*codec, values, test::step_of(0));
  std::vector<float> out(values.size());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(codec->decode(std::span(bytes).first(size), out), Failure) << size;
    EXPECT_THROW(codec->add(std::span(bytes).first(size), 1, out), Failure) << size;
  }
  bytes.push_back({});
  EXPECT_THROW(codec->decode(bytes, out), Failure);
}

TEST_P(EveryCodec, HasNothingToSayOfNothing) {
  for (const std::vector<CodecPiece>& pieces : {std::vector<CodecPiece>{}, std::vector<CodecPiece>{{.size = 0}}}) {
    const auto codec = make(pieces);
    std::vector<float> out;
    codec->decode(encoded(*codec, {}, test::step_of(0)), out);
    encoded(*codec, {}, test::step_of(1));
  }
}

TEST_P(EveryCodec, TakesZerosAndTinyNumbers) {
  const auto codec = make();
  std::vector<float> values(n_);
  for (const float x : decoded(*codec, encoded(*codec, values, test::step_of(0)), n_)) ASSERT_TRUE(std::isfinite(x));
  std::ranges::fill(values, 1e-42f);
  for (const float x : decoded(*codec, encoded(*codec, values, test::step_of(1)), n_)) ASSERT_TRUE(std::isfinite(x));
}

TEST_P(EveryCodec, SurvivesNumbersThatAreNone) {
  const auto codec = make();
  std::vector<float> values = test::gradient(pieces_, 1);
  values[17] = NAN, values[5000] = INFINITY, values[5001] = -INFINITY;
  for (int step = 0; step < 3; ++step) decoded(*codec, encoded(*codec, values, test::step_of(step)), n_);
}

INSTANTIATE_TEST_SUITE_P(All, EveryCodec, testing::ValuesIn(test::codec_cases()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return std::to_string(info.index) + "_" + name;
});

}  // namespace
}  // namespace echelon
