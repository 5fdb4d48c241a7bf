#include "foresight/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace echelon::foresight {

namespace {

bool says(const std::vector<Advice>& all, std::string_view text) {
  return std::ranges::any_of(all, [&](const Advice& a) { return a.what.find(text) != std::string::npos; });
}

Ranking ranking_of(const Prediction& best) {
  Ranking r;
  r.plans.push_back({.prediction = best, .efficiency = 1});
  return r;
}

TEST(Advice, BeforeARunNamesWhatNothingHides) {
  const AdviceFacts facts{.recipe = "r.toml", .workers = 2, .cores = 2, .batch = 64, .shards = 8};
  EXPECT_TRUE(advice_before(ranking_of({.seconds = 1}), facts).empty());
  EXPECT_TRUE(says(advice_before(ranking_of({.seconds = 1, .input = 0.3}), facts),
                   "input-bound: 30 % of a step goes into making samples"));
  const Prediction late{.seconds = 1, .late = {.bucket = 2, .buckets = 5, .bytes = 2048, .seconds = 0.25}};
  EXPECT_TRUE(says(advice_before(ranking_of(late), facts),
                   "bucket 3 of 5 (2.0 KiB of gradients) is not summed when computing ends"));
  EXPECT_TRUE(says(advice_before(ranking_of({.seconds = 1}),
                                 {.recipe = "r.toml", .workers = 16, .cores = 16, .batch = 64, .shards = 16}),
                   "with 16 workers the batch of 64 leaves 4 samples each"));
}

TEST(Advice, AfterARunNamesTheBucketAndTheRank) {
  const Json summary = Json::parse(R"({"seconds": 10, "ranks": [
    {"compute_s": 4, "exchange_s": 1, "bucket_wait": {"bucket": 3, "of": 5, "for_rank": 2, "seconds": 2}},
    {"compute_s": 4, "exchange_s": 1, "bucket_wait": {"bucket": 1, "of": 5, "for_rank": 0, "seconds": 0.1}},
    {"compute_s": 8, "exchange_s": 1}]})");
  const auto all = advice_after(summary, {.recipe = "r.toml", .workers = 3, .cores = 4, .batch = 96, .shards = 3});
  EXPECT_TRUE(
      says(all, "bucket 3 of 5 waits for rank 2: rank 0 did so for 20 % of the time, for that rank computes longer"));
  EXPECT_FALSE(says(all, "bucket 1 of 5"));
  // A summary that somebody has written by hand does no harm.
  EXPECT_FALSE(says(advice_after(Json::parse(R"({"seconds": 1, "ranks": [{"bucket_wait": {"seconds": "x"}}, 3]})"), {}),
                    "bucket"));
  EXPECT_FALSE(says(
      advice_after(Json::parse(R"({"seconds": 1, "ranks": [{"bucket_wait": {"seconds": 1, "for_rank": -7}}]})"), {}),
      "computes longer"));
}

}  // namespace

}  // namespace echelon::foresight
