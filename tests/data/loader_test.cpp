#include "data/loader.h"

#include <cstring>

#include "data/images/transform.h"
#include "tests/data/ledger.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::numbers;
using test::says;

LoaderOptions options(std::uint64_t batch, std::uint64_t shards, int prefetch) {
  LoaderOptions o;
  o.seed = 11;
  o.batches = {{0, batch}};
  o.shards = shards;
  o.prefetch = prefetch;
  return o;
}

DatasetPtr augmented(std::uint64_t size) {
  std::vector<TransformPtr> chain;
  chain.push_back(make_crop({.height = 0, .width = 0, .pad = 1, .centre = false}));
  chain.push_back(make_flip(0.5f));
  chain.push_back(make_noise(0.1f));
  return shuffled(mapped(numbers(size, Shape{1, 4, 4}), std::move(chain)));
}

// Everything in a batch, as bytes.
std::vector<std::byte> content(const Loader& loader, const Batch& batch) {
  std::vector<std::byte> all;
  for (std::uint64_t s = 0; s < loader.shards(); ++s)
    for (std::size_t f = 0; f < loader.dataset().fields().size(); ++f) {
      const auto bytes = batch.field(s, f);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  return all;
}

TEST(Loader, ReadingAheadChangesNoBit) {
  const auto data = augmented(53);
  Loader plain(data, options(8, 3, 0));
  for (const int prefetch : {1, 2, 5})
    for (const int threads : {1, 3}) {
      auto o = options(8, 3, prefetch);
      o.threads = threads;
      Loader ahead(data, o);
      for (std::uint64_t step = 0; step < 40; ++step)
        ASSERT_EQ(content(plain, plain.at(step)), content(ahead, ahead.at(step)))
            << prefetch << " " << threads << " " << step;
    }
}

TEST(Loader, AnyStepCanBeAskedForAtAnyTime) {
  const auto data = augmented(29);
  Loader plain(data, options(7, 2, 0)), ahead(data, options(7, 2, 3));
  for (const std::uint64_t step : {5, 6, 7, 3, 3, 100, 101, 0, 1, 2, 50})
    ASSERT_EQ(content(plain, plain.at(step)), content(ahead, ahead.at(step))) << step;
}

TEST(Loader, AShardIsTheSameWhoeverLoadsIt) {
  const auto data = augmented(64);
  Loader all(data, options(16, 5, 2));
  for (std::uint64_t first = 0; first < 5; ++first) {
    auto o = options(16, 5, 2);
    o.own = {first, 1};
    Loader one(data, o);
    for (std::uint64_t step = 0; step < 10; ++step) {
      const auto a = all.at(step).field(first, 0), b = one.at(step).field(first, 0);
      ASSERT_TRUE(std::ranges::equal(a, b)) << first << " " << step;
    }
  }
}

// The heart of the matter: every sample once an epoch, whatever the sizes, also when the run stops and resumes.
TEST(Loader, EverySampleIsUsedOnceAnEpochAlsoAfterResuming) {
  const Stream random({.seed = 1});
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    std::uint64_t draw = trial * 16;
    const auto below = [&](std::uint32_t n) { return random.below(n, draw++); };
    const std::uint64_t size = 1 + below(90), batch = 1 + below(20), shards = 1 + below(5);
    const auto data = shuffled(numbers(size));
    Ledger ledger(size), content_ledger(size);
    auto o = options(batch, shards, static_cast<int>(below(3)));
    if (below(2)) o.batches.push_back({1 + below(30), 1 + below(20)});
    auto loader = std::make_unique<Loader>(data, o);
    const std::uint64_t stop = below(40);
    std::uint32_t epoch = 0;
    for (std::uint64_t step = 0; step < loader->batches().steps_before(4); ++step) {
      if (step == stop) {  // a new process knows nothing but the step
        o.first_step = step;
        loader = std::make_unique<Loader>(data, o);
      }
      const Batch& b = loader->at(step);
      if (b.cursor().epoch != epoch) {
        ASSERT_EQ(ledger.complaint(), "") << "trial " << trial << " epoch " << epoch;
        ASSERT_TRUE(content_ledger.complete());
        ledger.next_epoch(), content_ledger.next_epoch();
        epoch = b.cursor().epoch;
      }
      ledger.note(loader->origins(step));
      std::vector<std::uint64_t> seen;  // what the batch really holds, told from the samples themselves
      for (std::uint64_t s = 0; s < shards; ++s)
        for (std::uint64_t i = 0; i < b.samples_of(s).count; ++i)
          seen.push_back(static_cast<std::uint64_t>(b.field_as<float>(s, 0)[2 * i]));
      ASSERT_EQ(seen, loader->origins(step));
      content_ledger.note(seen);
    }
    ASSERT_EQ(ledger.complaint(), "");
    ASSERT_EQ(epoch, 3u);
  }
}

TEST(Loader, OrderDiffersBetweenEpochsAndSeeds) {
  const auto data = shuffled(numbers(100));
  auto o = options(100, 1, 0);
  Loader a(data, o);
  o.seed = 12;
  Loader b(data, o);
  EXPECT_NE(a.origins(0), a.origins(1));
  EXPECT_NE(a.origins(0), b.origins(0));
}

TEST(Loader, UnevenBatchesFallToShardsEvenly) {
  Loader loader(numbers(10), options(8, 3, 1));
  EXPECT_EQ(loader.largest_shard(), 3u);
  const Batch& last = loader.at(1);
  EXPECT_EQ(last.samples(), 2u);
  EXPECT_EQ(last.samples_of(0).count + last.samples_of(1).count + last.samples_of(2).count, 2u);
  EXPECT_EQ(last.field(0, 0).size(), last.samples_of(0).count * 8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(last.field(2, 0).data()) % 64, 0u);
}

class Failing : public test::Numbers {
 public:
  Failing() : Numbers(100) {}
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    if (index == 42) bad_input("sample 42 is broken");
    Numbers::get(index, context, out);
  }
};

TEST(Loader, AnErrorInTheBackgroundIsToldAtItsStep) {
  for (const int prefetch : {0, 3}) {
    Loader loader(std::make_shared<Failing>(), options(10, 1, prefetch));
    for (std::uint64_t step = 0; step < 4; ++step) EXPECT_NO_THROW(loader.at(step));
    EXPECT_TRUE(says(complaint_of([&] { loader.at(4); }), "sample 42 is broken"));
    EXPECT_TRUE(says(complaint_of([&] { loader.at(4); }), "sample 42 is broken")) << "again";
    EXPECT_NO_THROW(loader.at(5));
  }
}

TEST(Loader, RefusesOptionsThatDoNotFit) {
  EXPECT_THROW(Loader(numbers(0), options(1, 1, 0)), BadInput);
  EXPECT_THROW(Loader(numbers(5), options(1, 0, 0)), BadInput);
  EXPECT_THROW(Loader(numbers(5), options(1, 1, -1)), BadInput);
  auto o = options(4, 4, 0);
  o.own = {3, 2};
  EXPECT_THROW(Loader(numbers(5), o), BadInput);
}

TEST(Loader, CountsTheWaiting) {
  Loader loader(numbers(1000, Shape{1, 32, 32}), options(500, 1, 0));
  EXPECT_EQ(loader.seconds_waited(), 0);
  loader.at(0);
  EXPECT_GT(loader.seconds_waited(), 0);
}

TEST(Ledger, SaysWhatIsWrong) {
  Ledger ledger(3);
  ledger.note(std::vector<std::uint64_t>{0, 1});
  EXPECT_TRUE(says(ledger.complaint(), "1 of 3 samples were not used, the first is 2"));
  ledger.note(std::vector<std::uint64_t>{1});
  EXPECT_TRUE(says(ledger.complaint(), "sample 1 was used twice"));
  ledger.next_epoch();
  ledger.note(std::vector<std::uint64_t>{7});
  EXPECT_TRUE(says(ledger.complaint(), "sample 7 does not exist"));
}

}  // namespace
}  // namespace echelon::data
