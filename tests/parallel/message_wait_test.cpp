// Messages between workers, servers and the scheduler: what is not in order is refused with the sender's name.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>

#include "parallel/server/messages.h"
#include "parallel/team/work_scheduler.h"
#include "tests/parallel/results.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using namespace test;

// An exchange of which one rank sends a message that nobody expects.
class WithARogue : public ExchangeKind {
 public:
  WithARogue(std::unique_ptr<const ExchangeKind> inner, Rank rogue, Rank victim, const MessageHeader& message)
      : inner_(std::move(inner)), rogue_(rogue), victim_(victim), message_(message) {}
  ExchangeTraits traits() const override { return inner_->traits(); }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    if (parts.rank() == rogue_) parts.mailbox->post(victim_, message_);
    return inner_->make(std::move(parts));
  }
  Traffic traffic(const TrafficQuery& c) const override { return inner_->traffic(c); }
  std::string traffic_text() const override { return inner_->traffic_text(); }

 private:
  std::unique_ptr<const ExchangeKind> inner_;
  Rank rogue_, victim_;
  MessageHeader message_;
};

// What the first of three ranks to fail says.
std::string failure_of(const SystemJob& job) {
  const SimReport report =
      run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) { run_system(world, job); });
  return report.ok() ? "" : report.failures.front().text;
}

std::string failure_of(const std::string& system, Rank rogue, Rank victim, const MessageHeader& message) {
  SystemJob job{.system = system, .batch = 30};
  job.adapt = [&](Composition& c) {
    c.exchange = std::make_unique<WithARogue>(std::move(c.exchange), rogue, victim, message);
  };
  return failure_of(job);
}

TEST(Messages, AWorkerRefusesAnswersAboutKeysThatDoNotExist) {
  const auto tag = static_cast<std::uint16_t>(Exchange::worker_tag);
  constexpr std::uint32_t far = 1u << 30;
  for (const char* settings : {"", "replicas = 2"}) {
    EXPECT_TRUE(says(
        failure_of(gradients_to_servers(settings, "bsp"), 1, 2, {.kind = exchanges::flushed, .tag = tag, .key = far}),
        "rank 1 has flushed key 1073741824"));
    EXPECT_TRUE(says(
        failure_of(gradients_to_servers(settings, "bsp"), 1, 2, {.kind = exchanges::answer, .tag = tag, .key = far}),
        "rank 1 answered about key 1073741824"));
  }
}

TEST(Messages, AWorkerRefusesWorkThatIsNotInTheRound) {
  constexpr std::uint16_t work = 1, tag = WorkScheduler::scheduler_reply_tag;
  for (const MessageHeader& head :
       {MessageHeader{.kind = work, .tag = tag, .key = 77}, MessageHeader{.kind = work, .tag = tag},
        MessageHeader{.kind = work, .tag = tag, .clock = 1'000'000}})
    EXPECT_TRUE(says(failure_of(gradients_to_servers("", "async"), 1, 2, head), "rank 1 handed out part"));
}

TEST(Messages, TheSchedulerRefusesRequestsThatMakeNoSense) {
  EXPECT_TRUE(says(failure_of(gradients_to_servers("", "async"), 1, 0, {.tag = WorkScheduler::scheduler_tag}),
                   "rank 1 asked for work"));
}

// In rounds nobody could ever answer it.
TEST(Messages, AServerInRoundsRefusesToBeAskedWithoutAContribution) {
  for (const auto kind : {exchanges::await, exchanges::warm})
    EXPECT_TRUE(says(failure_of(gradients_to_servers("", "bsp"), 1, 0, {.kind = kind, .tag = Exchange::server_tag}),
                     "rank 1 asks for key 0 without a contribution"));
}

TEST(Messages, AServerRefusesStepsThatNobodyReaches) {
  for (const std::int64_t clock : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}})
    for (const char* sync : {"bsp", "async", "ssp"})
      EXPECT_TRUE(says(failure_of(gradients_to_servers("", sync), 1, 0,
                                  {.kind = exchanges::push, .tag = Exchange::server_tag, .clock = clock}),
                       "rank 1 says that it is at step"));
}

// Every step's and key's random numbers are their own, however many keys there are.
TEST(ExchangeParts, EveryKeyHasItsOwnRandomNumbersInEveryStep) {
  LocalTeam lone(1);
  ExchangeParts parts;
  parts.world = lone.world.get();
  std::set<std::array<std::uint32_t, 4>> drawn;
  for (std::int64_t step = 0; step < 4; ++step)
    for (std::uint32_t key = 0; key < 2500; ++key) drawn.insert(parts.random("codec", step, key).block(0));
  EXPECT_EQ(drawn.size(), 4u * 2500u);
  EXPECT_FALSE(drawn.contains(parts.random("filter", 0, 0).block(0)));
}

// Plain numbers; it notes the epochs that it is told.
class Noting : public Codec {
 public:
  Noting(std::size_t floats, std::vector<double>& epochs) : floats_(floats), epochs_(epochs) {}
  Traits traits() const override { return {.lossless = true, .unbiased = true}; }
  std::size_t most_bytes() const override { return floats_ * sizeof(float); }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    epochs_.push_back(step.epoch);
    std::memcpy(out.data(), values.data(), values.size_bytes());
    return values.size_bytes();
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      out[i] += scale * value;
    }
  }

 private:
  std::size_t floats_;
  std::vector<double>& epochs_;
};

// What is left over at the end of a round belongs to its last epoch: a codec that warms up must not begin again.
TEST(ServerPush, WhatIsLeftOverIsPushedWithTheLastStepsEpoch) {
  std::vector<double> epochs;
  SystemJob job{
      .system = gradients_to_servers("[when]\nn_push = 4", "async") + "work = 'own'\n", .steps = 10, .batch = 30};
  job.adapt = [&](Composition& c) {
    c.codec = [&](const std::vector<CodecPiece>& pieces) {
      std::size_t floats = 0;
      for (const CodecPiece& p : pieces) floats += p.size;
      return std::make_unique<Noting>(floats, epochs);
    };
  };
  simulate_system(3, job);
  EXPECT_EQ(std::ranges::count(epochs, 3.0 / 8), 3);  // the three workers' first push, of their first four steps
  EXPECT_EQ(std::ranges::count(epochs, 9.0 / 8), 3);  // and their last
  EXPECT_EQ(std::ranges::count(epochs, 0.0), 0);
}

}  // namespace
}  // namespace echelon
