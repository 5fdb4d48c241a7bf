#include "data/transform.h"

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
