#include "world/os/event_ring.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "world/os/host.h"

namespace echelon {
namespace {

class EventRings : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(int rank) const { return folder_ + "/rank_" + std::to_string(rank) + ".ring"; }

  const std::string folder_ = testing::TempDir() + "event_rings_" + std::to_string(process_id()) + "_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(EventRings, SayWhatARankDidUntilItWasKilled) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EventRing ring(path(2), 2, 4);
    ring.end_step(7, {.input = 1, .compute = 2, .exchange = 3, .waiting = 4});
    ring.set_activity("backward of conv2");
    ring.message(true, {.kind = OperationKind::all_reduce, .step = 3, .number = 9}, 1, 4096);
    ring.set_waiting_for(1);
    ring.set_saving(true);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto view = EventRing::read(path(2));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->rank, 2);
  EXPECT_EQ(view->ranks, 4);
  EXPECT_EQ(view->process, child);
  EXPECT_EQ(view->step, 7);
  EXPECT_EQ(view->times.waiting, 4);
  EXPECT_EQ(view->activity, "backward of conv2");
  EXPECT_EQ(view->waiting_for, 1);
  EXPECT_GT(view->saving_since, 0);
  EXPECT_EQ(view->ended, "");
  ASSERT_EQ(view->events.size(), 5U);
  EXPECT_EQ(view->events[2].what, "sends all-reduce 9, part 3: 4096 bytes");
  EXPECT_EQ(view->events[2].peer, 1);
  EXPECT_EQ(view->events[2].step, 7);
}

TEST_F(EventRings, KeepTheLastEvents) {
  EventRing ring(path(0), 0, 1);
  for (int i = 0; i < 1000; ++i) ring.note("event " + std::to_string(i));
  const auto view = EventRing::read(path(0));
  ASSERT_TRUE(view);
  ASSERT_EQ(view->events.size(), EventRing::most_events);
  EXPECT_EQ(view->events.back().what, "event 999");
  EXPECT_EQ(view->events.front().what, "event " + std::to_string(1000 - EventRing::most_events));
}

TEST_F(EventRings, AreOfTheJobThatBeganLast) {
  { EventRing(path(0), 0, 3), EventRing(path(1), 1, 3), EventRing(path(2), 2, 3); }
  { EventRing(path(0), 0, 2), EventRing(path(1), 1, 2); }
  EXPECT_EQ(EventRing::read_all(folder_).size(), 2U);
}

TEST_F(EventRings, GoOnWithoutAFile) {
  EventRing ring(folder_ + "/there/is/no/such/folder", 0, 1);
  ring.set_activity("anything");
  EXPECT_FALSE(EventRing::read(folder_ + "/there/is/no/such/folder"));
}

TEST_F(EventRings, ThatAreNoneAreNotRead) {
  {
    EventRing ring(path(0), 0, 1);
    ring.note("something");
  }
  std::ifstream in(path(0), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto reads = [&](const std::string& bytes) {
    std::ofstream(path(1), std::ios::binary) << bytes;
    return EventRing::read(path(1)).has_value();
  };
  EXPECT_TRUE(reads(good));
  EXPECT_FALSE(reads(""));
  EXPECT_FALSE(reads(good.substr(1)));
  EXPECT_FALSE(reads(good + "x"));
  for (std::size_t i = 0; i < good.size(); ++i) {  // whatever a byte is, reading it harms nobody
    std::string bad = good;
    bad[i] = static_cast<char>(0xff);
    if (i < 8) {
      EXPECT_FALSE(reads(bad));
    } else if (i % 7 == 0 || i < 300) {
      std::ofstream(path(1), std::ios::binary) << bad;
      if (const auto view = EventRing::read(path(1))) {
        for (const RingView::Event& e : view->events) EXPECT_LT(e.what.size(), 200U);
      }
    }
  }
  std::filesystem::create_symlink(path(0), path(3));
  EXPECT_FALSE(EventRing::read(path(3)));
}

}  // namespace
}  // namespace echelon
