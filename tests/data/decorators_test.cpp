#include "data/decorators.h"

#include <algorithm>
#include <set>

#include "data/images/transform.h"
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

TEST(Decorators, SlicesAndConcatenationsAreWhatTheySay) {
  EXPECT_EQ(firsts(*subset(numbers(10), 3, 4)), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(firsts(*concatenated({numbers(2), numbers(0), numbers(3)})), (std::vector<float>{0, 1, 0, 1, 2}));
  EXPECT_EQ(concatenated({numbers(2), numbers(3)})->origin(3, {}), 3u);
  EXPECT_THROW(subset(numbers(10), 8, 3), BadInput);
  EXPECT_THROW(concatenated({numbers(2), numbers(2, Shape{3})}), BadInput);
}

TEST(Decorators, FingerprintsTellContentsApartButNotOrders) {
  const auto d = numbers(10);
  EXPECT_EQ(shuffled(d)->info().fingerprint, d->info().fingerprint);
  EXPECT_EQ(cached(d, 1 << 20)->info().fingerprint, d->info().fingerprint);
  std::set<std::string> different = {d->info().fingerprint, subset(d, 0, 5)->info().fingerprint,
                                     subset(d, 5, 5)->info().fingerprint, concatenated({d, d})->info().fingerprint};
  EXPECT_EQ(different.size(), 4u);
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

}  // namespace
}  // namespace echelon::data
