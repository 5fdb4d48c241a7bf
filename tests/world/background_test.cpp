#include "world/os/background.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace echelon {
namespace {

TEST(Background, DoesEveryJobInOrderBeforeItEnds) {
  std::vector<int> done;
  {
    const auto worker = make_background("test", 3);
    for (int i = 0; i < 100; ++i) worker->post([&done, i] { done.push_back(i); });
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(done, expected);
}

TEST(Background, ParksFailuresAndGoesOn) {
  const auto worker = make_background("test", 4);
  auto bad = worker->post([] { throw std::runtime_error("no"); });
  auto good = worker->post([] {});
  EXPECT_THROW(bad.get(), std::runtime_error);
  EXPECT_NO_THROW(good.get());
}

TEST(Background, TryPostRefusesInsteadOfWaiting) {
  const auto worker = make_background("test", 1);
  std::promise<void> started, release;
  worker->post([&] {
    started.set_value();
    release.get_future().wait();
  });
  started.get_future().wait();  // the first runs; one may wait besides it
  auto second = worker->try_post([] {});
  ASSERT_TRUE(second);
  EXPECT_FALSE(worker->try_post([] {}));
  EXPECT_FALSE(is_done(*second));
  release.set_value();
  second->get();
  EXPECT_TRUE(worker->try_post([] {}));
}

TEST(Background, LetsGoOfWhatAJobHeldWhenItIsDone) {
  std::vector<std::unique_ptr<Background>> workers;
  workers.push_back(make_background("test", 1));
  workers.push_back(make_inline_background());
  for (const auto& worker : workers) {
    const auto held = std::make_shared<int>(0);
    const auto job = worker->post([held] {});
    job.wait();
    EXPECT_EQ(held.use_count(), 1);
    const auto failing = worker->post([held] { throw std::runtime_error("no"); });
    failing.wait();
    EXPECT_EQ(held.use_count(), 1);
  }
}

TEST(Background, InlineRunsAtOnce) {
  const auto worker = make_inline_background();
  bool ran = false;
  const auto job = worker->post([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(is_done(job));
}

}  // namespace
}  // namespace echelon
