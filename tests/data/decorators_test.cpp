#include "data/decorators.h"

#include <algorithm>
#include <set>

#include "data/transform.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::numbers;
using test::says;
using test::values;

std::vector<float> firsts(const Dataset& d, SampleContext context = {}) {
  std::vector<float> out;
  for (std::uint64_t i = 0; i < d.size(); ++i) out.push_back(values<float>(d, i, 0, context)[0]);
  return out;
}

TEST(Decorators, SlicesShardsAndConcatenationsAreWhatTheySay) {
  EXPECT_EQ(firsts(*sliced(numbers(10), 3, 4)), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(firsts(*sharded(numbers(10), 1, 3)), (std::vector<float>{1, 4, 7}));
  EXPECT_EQ(firsts(*sharded(numbers(10), 0, 3)), (std::vector<float>{0, 3, 6, 9}));
  EXPECT_EQ(firsts(*concatenated({numbers(2), numbers(0), numbers(3)})), (std::vector<float>{0, 1, 0, 1, 2}));
  EXPECT_EQ(concatenated({numbers(2), numbers(3)})->origin(3, {}), 3u);
  EXPECT_THROW(sliced(numbers(10), 8, 3), BadInput);
  EXPECT_THROW(sharded(numbers(10), 3, 3), BadInput);
  EXPECT_THROW(concatenated({numbers(2), numbers(2, Shape{3})}), BadInput);
}

TEST(Decorators, FingerprintsTellContentsApartButNotOrders) {
  const auto d = numbers(10);
  EXPECT_EQ(shuffled(d)->info().fingerprint, d->info().fingerprint);
  EXPECT_EQ(cached(d, 1 << 20)->info().fingerprint, d->info().fingerprint);
  std::set<std::string> different = {d->info().fingerprint, sliced(d, 0, 5)->info().fingerprint,
                                     sliced(d, 5, 5)->info().fingerprint, sharded(d, 0, 2)->info().fingerprint,
                                     concatenated({d, d})->info().fingerprint};
  EXPECT_EQ(different.size(), 5u);
}

TEST(Decorators, ShufflingIsPureAndComplete) {
  const auto d = shuffled(numbers(50));
  const auto a = firsts(*d, {1, 2});
  EXPECT_EQ(a, firsts(*d, {1, 2}));
  EXPECT_NE(a, firsts(*d, {1, 3}));
  auto sorted = a;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, firsts(*numbers(50)));
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(a[i], static_cast<float>(d->origin(i, {1, 2})));
}

TEST(Decorators, HoldingOutSplitsTheSamplesOnce) {
  const auto train = held_out(numbers(50), 0.2, true), rest = held_out(numbers(50), 0.2, false);
  EXPECT_EQ(train->size(), 40u);
  EXPECT_EQ(rest->size(), 10u);
  auto all = firsts(*train, {7, 7});
  const auto others = firsts(*rest, {1, 0});
  all.insert(all.end(), others.begin(), others.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, firsts(*numbers(50)));
  EXPECT_THROW(held_out(numbers(50), 0, true), BadInput);
  EXPECT_THROW(held_out(numbers(50), 1, true), BadInput);
}

class Counting : public test::Numbers {
 public:
  using Numbers::Numbers;
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    ++calls;
    Numbers::get(index, context, out);
  }
  mutable std::atomic<int> calls = 0;
};

TEST(Decorators, ACacheAsksOnceAndAnswersTheSame) {
  const auto inner = std::make_shared<Counting>(20);
  const auto d = cached(inner, 1 << 20);
  EXPECT_EQ(firsts(*d), firsts(*numbers(20)));
  EXPECT_EQ(firsts(*d), firsts(*numbers(20)));
  EXPECT_EQ(inner->calls, 20);
  EXPECT_EQ(test::label(*d, 13), 3);
}

TEST(Decorators, ACacheRefusesWhatIsTooLargeOrRandom) {
  EXPECT_TRUE(says(complaint_of([] { cached(numbers(1000), 1000); }), "the limit"));
  EXPECT_TRUE(says(complaint_of([] { cached(shuffled(numbers(10)), 1 << 20); }), "below the augmentation"));
}

TEST(Decorators, BatchesGainADimension) {
  const auto d = batched(numbers(10), 3);
  EXPECT_EQ(d->size(), 3u);
  EXPECT_EQ(d->fields()[0].shape, (Shape{3, 2}));
  EXPECT_EQ(d->fields()[1].shape, Shape{3});
  EXPECT_EQ(values<float>(*d, 1, 0), (std::vector<float>{3, 3.5, 4, 4.5, 5, 5.5}));
  EXPECT_EQ(values<std::int32_t>(*d, 2, 1), (std::vector<std::int32_t>{6, 7, 8}));
}

TEST(Decorators, PrefetchingChangesNothing) {
  const auto plain = shuffled(numbers(40));
  const auto ahead = prefetched(shuffled(numbers(40)), 4);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(firsts(*ahead, {5, epoch}), firsts(*plain, {5, epoch}));
  for (const std::uint64_t i : {7, 3, 39, 0, 1, 2})
    EXPECT_EQ(values<float>(*ahead, i, 0, {5, 1}), values<float>(*plain, i, 0, {5, 1}));
}

}  // namespace
}  // namespace echelon::data
