#include "data/images/transform.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::numbers;
using test::says;
using test::values;

DatasetPtr with(DatasetPtr inner, TransformPtr a, TransformPtr b = nullptr, TransformPtr c = nullptr) {
  std::vector<TransformPtr> chain;
  for (auto* t : {&a, &b, &c})
    if (*t) chain.push_back(std::move(*t));
  return mapped(std::move(inner), std::move(chain));
}

using MakeTransform = TransformPtr (*)();
const std::vector<MakeTransform> all_random = {
    [] { return make_crop({.height = 0, .width = 0, .pad = 2, .centre = false}); },
    [] { return make_crop({.height = 3, .width = 2, .pad = 1, .centre = false}); },
    [] { return make_flip(0.5f); },
    [] { return make_shift(2); },
    [] { return make_cutout(2); },
    [] { return make_noise(0.3f); },
    [] { return make_rotate(20); },
    [] { return make_zoom(0.3); },
    [] { return make_colour({}); },
    [] { return make_erase(0.5, 0.1, 0.4); },
};

// A pure function of (seed, epoch, index): the same again, and different if any of the three differs.
TEST(Transform, RandomnessIsKeyedBySeedEpochAndIndexOnly) {
  for (std::size_t t = 0; t < all_random.size(); ++t) {
    const auto d = with(numbers(100, Shape{2, 4, 5}), all_random[t]());
    EXPECT_TRUE(d->info().random);
    int by_seed = 0, by_epoch = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto a = values<float>(*d, i, 0, {1, 1});
      ASSERT_EQ(a, values<float>(*d, i, 0, {1, 1}));
      by_seed += a != values<float>(*d, i, 0, {2, 1});
      by_epoch += a != values<float>(*d, i, 0, {1, 2});
    }
    EXPECT_GT(by_seed, 20) << t;
    EXPECT_GT(by_epoch, 20) << t;
  }
}

TEST(Transform, TwoOfAKindInAChainDrawApart) {
  const auto once = with(numbers(50, Shape{1, 1, 64}), make_noise(1));
  const auto twice = with(numbers(50, Shape{1, 1, 64}), make_noise(1), make_noise(1));
  double product = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto a = values<float>(*once, i, 0), b = values<float>(*twice, i, 0),
               clean = values<float>(*numbers(50, Shape{1, 1, 64}), i, 0);
    for (std::size_t j = 0; j < a.size(); ++j) product += (a[j] - clean[j]) * (b[j] - a[j]);
  }
  EXPECT_NEAR(product / (50 * 64), 0, 0.1);
}

// What a crop may give: the image with zeros around it, seen through every possible window. Each is seen, none else.
TEST(Transform, CropSeesEveryWindowOfThePaddedImage) {
  for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{3, 4}, {2, 3}, {5, 4}}) {
    const std::int64_t pad = 1, H = 3, W = 4;
    const auto d = with(numbers(1, Shape{2, H, W}), make_crop({.height = h, .width = w, .pad = pad, .centre = false}));
    EXPECT_EQ(d->fields()[0].shape, (Shape{2, h, w}));
    const auto image = values<float>(*numbers(1, Shape{2, H, W}), 0, 0);
    std::set<std::vector<float>> windows, seen;
    for (std::int64_t dy = 0; dy <= H + 2 * pad - h; ++dy)
      for (std::int64_t dx = 0; dx <= W + 2 * pad - w; ++dx) {
        std::vector<float> window;
        for (std::int64_t c = 0; c < 2; ++c)
          for (std::int64_t y = dy - pad; y < dy - pad + h; ++y)
            for (std::int64_t x = dx - pad; x < dx - pad + w; ++x)
              window.push_back(
                  y < 0 || x < 0 || y >= H || x >= W ? 0 : image[static_cast<std::size_t>((c * H + y) * W + x)]);
        windows.insert(window);
      }
    for (std::uint32_t e = 0; e < 300; ++e) seen.insert(values<float>(*d, 0, 0, {0, e}));
    EXPECT_EQ(seen, windows);
  }
}

TEST(Transform, ShiftMovesTheWholeImage) {
  const auto d = with(numbers(1, Shape{1, 3, 3}), make_shift(1));
  const auto image = values<float>(*numbers(1, Shape{1, 3, 3}), 0, 0);
  std::set<std::vector<float>> seen;
  for (std::uint32_t e = 0; e < 300; ++e) seen.insert(values<float>(*d, 0, 0, {0, e}));
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_TRUE(seen.contains(image));
  EXPECT_TRUE(seen.contains({0, 0, 0, 0, image[0], image[1], 0, image[3], image[4]}));
}

TEST(Transform, CentreCropIsCalm) {
  const auto d = with(numbers(1, Shape{1, 4, 4}), make_crop({.height = 2, .width = 2, .pad = 0, .centre = true}));
  const auto image = values<float>(*numbers(1, Shape{1, 4, 4}), 0, 0);
  EXPECT_FALSE(d->info().random);
  EXPECT_EQ(values<float>(*d, 0, 0), (std::vector<float>{image[5], image[6], image[9], image[10]}));
}

TEST(Transform, FlipExchangesLeftAndRightHalfOfTheTime) {
  const auto d = with(numbers(1, Shape{1, 2, 3}), make_flip(0.5f));
  const auto image = values<float>(*numbers(1, Shape{1, 2, 3}), 0, 0);
  const std::vector<float> turned = {image[2], image[1], image[0], image[5], image[4], image[3]};
  int flipped = 0;
  for (std::uint32_t e = 0; e < 1000; ++e) {
    const auto now = values<float>(*d, 0, 0, {0, e});
    ASSERT_TRUE(now == image || now == turned);
    flipped += now == turned;
  }
  EXPECT_NEAR(flipped, 500, 60);
}

TEST(Transform, CutoutClearsASquare) {
  const auto d = with(numbers(2, Shape{1, 9, 9}), make_cutout(3));
  for (std::uint32_t e = 0; e < 50; ++e) {
    const auto now = values<float>(*d, 1, 0, {0, e});
    const auto cleared = std::ranges::count(now, 0.0f);
    EXPECT_GE(cleared, 4);
    EXPECT_LE(cleared, 9);
  }
}

TEST(Transform, RotationTurnsAboutTheMiddle) {
  // Angles are drawn, so a quarter turn cannot be asked for: but its size can be found again from one pixel's way.
  const auto d = with(numbers(60, Shape{1, 9, 9}), make_rotate(180));
  const auto still = with(numbers(60, Shape{1, 9, 9}), make_rotate(0));
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto clean = values<float>(*numbers(60, Shape{1, 9, 9}), i, 0);
    EXPECT_EQ(values<float>(*still, i, 0, {1, 1}), clean);
    const auto turned = values<float>(*d, i, 0, {1, 1});
    EXPECT_NEAR(turned[4 * 9 + 4], clean[4 * 9 + 4], 1e-3 * std::abs(clean[40]));  // the middle stays
  }
}

// A disc about the middle looks the same however it is turned, but not however it is zoomed.
TEST(Transform, ZoomChangesSizeAndRotationDoesNot) {
  class Disc : public Dataset {
   public:
    Disc() : Dataset(info_of()) {}
    void get(std::uint64_t, const SampleContext&, SampleRef out) const override {
      for (int y = 0; y < 33; ++y)
        for (int x = 0; x < 33; ++x)
          reinterpret_cast<float*>(out[0])[y * 33 + x] = (y - 16) * (y - 16) + (x - 16) * (x - 16) <= 64 ? 1.0f : 0.0f;
    }

   private:
    static DatasetInfo info_of() {
      DatasetInfo info;
      info.size = 40;
      info.fields = {{"image", DType::f32, Shape{1, 33, 33}}};
      return info;
    }
  };
  auto area = [](const Dataset& d, std::uint64_t i) {
    double sum = 0;
    for (float v : values<float>(d, i, 0, {3, 1})) sum += static_cast<double>(v);
    return sum;
  };
  const auto disc = std::make_shared<Disc>();
  const double whole = area(*disc, 0);
  const auto turned = with(disc, make_rotate(180)), zoomed = with(disc, make_zoom(0.4));
  double least = 1e9, most = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(area(*turned, i), whole, 0.03 * whole);
    least = std::min(least, area(*zoomed, i)), most = std::max(most, area(*zoomed, i));
  }
  EXPECT_NEAR(std::sqrt(least / whole), 0.6, 0.08);
  EXPECT_NEAR(std::sqrt(most / whole), 1.4, 0.08);
}

TEST(Transform, ColourKeepsGreyGreyAndScalesIt) {
  const auto d = with(numbers(30, Shape{3, 2, 2}), make_colour({.brightness = 0.5, .contrast = 0, .saturation = 0}));
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto clean = values<float>(*numbers(30, Shape{3, 2, 2}), i, 0), seen = values<float>(*d, i, 0, {1, 1});
    const float factor = seen[5] / clean[5];
    EXPECT_GE(factor, 0.499f);
    EXPECT_LE(factor, 1.501f);
    for (std::size_t k = 0; k < clean.size(); ++k)
      EXPECT_NEAR(seen[k], factor * clean[k], 1e-3f * std::abs(clean[k]) + 1e-4f);
  }
  const auto contrast =
      with(numbers(30, Shape{3, 2, 2}), make_colour({.brightness = 0, .contrast = 0.5, .saturation = 0.5}));
  for (std::uint64_t i = 0; i < 30; ++i) {  // the mean of all stays
    const auto clean = values<float>(*numbers(30, Shape{3, 2, 2}), i, 0), seen = values<float>(*contrast, i, 0, {1, 1});
    double grey_before = 0, grey_after = 0;
    for (std::size_t p = 0; p < 4; ++p) {
      grey_before += 0.299 * clean[p] + 0.587 * clean[4 + p] + 0.114 * clean[8 + p];
      grey_after += 0.299 * seen[p] + 0.587 * seen[4 + p] + 0.114 * seen[8 + p];
    }
    const double mean = [&] {
      double sum = 0;
      for (float v : clean) sum += static_cast<double>(v);
      return sum / static_cast<double>(clean.size());
    }();
    const double drift = (grey_after / 4 - mean) / (grey_before / 4 - mean + 1e-12);
    EXPECT_GE(drift, 0.49);
    EXPECT_LE(drift, 1.51);
  }
}

TEST(Transform, EraseClearsARectangleOfTheShareAsked) {
  const auto d = with(numbers(200, Shape{1, 20, 20}), make_erase(0.5, 0.1, 0.3));
  int erased = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto clean = values<float>(*numbers(200, Shape{1, 20, 20}), i, 0), seen = values<float>(*d, i, 0, {1, 1});
    std::size_t zeros = 0, top = 20, bottom = 0, left = 20, right = 0;
    for (std::size_t k = 0; k < seen.size(); ++k) {
      if (seen[k] == clean[k]) continue;
      EXPECT_EQ(seen[k], 0);
      ++zeros;
      top = std::min(top, k / 20), bottom = std::max(bottom, k / 20);
      left = std::min(left, k % 20), right = std::max(right, k % 20);
    }
    if (zeros == 0) continue;
    ++erased;
    EXPECT_GE(zeros + 1, (bottom - top + 1) * (right - left + 1));  // one pixel may have been zero before
    EXPECT_GE(zeros, 28u);
    EXPECT_LE(zeros, 136u);
  }
  EXPECT_NEAR(erased, 100, 30);
}

TEST(Mixup, MixesTwoSamplesAndTakesTheClassOfOneOfThem) {
  class Ones : public Dataset {  // sample i: a picture of i's, and the class i
   public:
    Ones() : Dataset(info_of()) {}
    void get(std::uint64_t i, const SampleContext&, SampleRef out) const override {
      for (int k = 0; k < 4; ++k) reinterpret_cast<float*>(out[0])[k] = static_cast<float>(i);
      *reinterpret_cast<std::int32_t*>(out[1]) = static_cast<std::int32_t>(i);
    }

   private:
    static DatasetInfo info_of() {
      DatasetInfo info;
      info.size = 1000;
      info.classes = 1000;
      info.fields = {{"image", DType::f32, Shape{1, 2, 2}}, {"label", DType::i32, Shape{}}};
      return info;
    }
  };
  const auto d = mixed_up(std::make_shared<Ones>(), 1.0);
  EXPECT_TRUE(d->info().random);
  int own = 0, mixed = 0;
  double share = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto image = values<float>(*d, i, 0, {7, 1});
    const std::int32_t label = values<std::int32_t>(*d, i, 1, {7, 1})[0];
    ASSERT_EQ(image, values<float>(*d, i, 0, {7, 1}));
    for (float v : image) EXPECT_EQ(v, image[0]);
    own += label == static_cast<std::int32_t>(i);
    mixed += image[0] != static_cast<float>(i);
    // With the class known, the picture lies between it and sample i's; the own share can be found where they differ.
    if (label != static_cast<std::int32_t>(i)) {
      const double part = (image[0] - label) / (static_cast<double>(i) - label);
      EXPECT_GE(part, -1e-3);
      EXPECT_LE(part, 1.001);
      share += part;
    }
  }
  EXPECT_NEAR(own, 500, 60);  // uniform shares for alpha = 1
  EXPECT_GT(mixed, 950);
  EXPECT_NEAR(share / (1000 - own), 1.0 / 3, 0.05);  // given that the other's class was drawn
  EXPECT_THROW(mixed_up(std::make_shared<Ones>(), 0), BadInput);
}

TEST(Transform, NoiseIsTheStreamsNormal) {
  const auto d = with(numbers(3, Shape{1, 5, 7}), make_noise(0.5f));
  const Stream stream({.seed = 4, .step = 9, .shard = 2, .layer = stream_layer("data.transform")});
  const auto now = values<float>(*d, 2, 0, {4, 9}), clean = values<float>(*numbers(3, Shape{1, 5, 7}), 2, 0);
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(now[i], clean[i] + 0.5f * stream.normal(i), 2e-5) << i;
}

TEST(Transform, NormaliseIsByChannel) {
  const auto d = with(numbers(5, Shape{2, 1, 2}), make_normalise({1, 2}, {0.5f, 4}));
  const auto now = values<float>(*d, 3, 0);  // before: 3, 3.5 | 4, 4.5
  EXPECT_EQ(now, (std::vector<float>{4, 5, 0.5f, 0.625f}));
  EXPECT_FALSE(d->info().random);
}

TEST(Transform, ACopyStaysCleanBesideTheNoise) {
  const auto d = with(numbers(5, Shape{1, 2, 2}), make_copy("image", "target"), make_noise(1));
  ASSERT_EQ(d->fields().size(), 3u);
  EXPECT_EQ(d->fields()[1].name, "target");
  EXPECT_EQ(values<float>(*d, 3, 1), values<float>(*numbers(5, Shape{1, 2, 2}), 3, 0));
  EXPECT_NE(values<float>(*d, 3, 0), values<float>(*d, 3, 1));
  EXPECT_EQ(values<std::int32_t>(*d, 3, 2)[0], 3);
}

TEST(Transform, SeveralChangesOfShapeFollowEachOther) {
  const auto d = with(numbers(5, Shape{1, 6, 6}), make_crop({.height = 4, .width = 4, .pad = 0, .centre = true}),
                      make_copy("image", "target"), make_crop({.height = 2, .width = 2, .pad = 0, .centre = true}));
  const auto image = values<float>(*numbers(5, Shape{1, 6, 6}), 4, 0);
  EXPECT_EQ(values<float>(*d, 4, 0), (std::vector<float>{image[14], image[15], image[20], image[21]}));
  EXPECT_EQ(values<float>(*d, 4, 1).size(), 16u);
  EXPECT_EQ(values<float>(*d, 4, 1)[0], image[7]);
  EXPECT_EQ(values<std::int32_t>(*d, 4, 2)[0], 4);
}

TEST(Transform, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(says(complaint_of([] { with(numbers(5), make_flip(0.5f)); }), "a sample here is features f32 [2]"));
  EXPECT_TRUE(says(complaint_of([] {
                     with(numbers(5, Shape{1, 4, 4}), make_crop({.height = 7, .width = 2, .pad = 1, .centre = false}));
                   }),
                   "7 x 2 does not fit"));
  EXPECT_TRUE(says(complaint_of([] {
                     with(numbers(5, Shape{3, 4, 4}), make_normalise({1, 2}, {1, 1}));
                   }),
                   "2 means for an image of 3"));
  EXPECT_THROW(make_normalise({0}, {0}), BadInput);
  EXPECT_THROW(make_flip(2), BadInput);
}

}  // namespace
}  // namespace echelon::data
