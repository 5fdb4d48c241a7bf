// The exactly-once stream under random weather: thousands of schedules of drops, duplicates, delays (hence reordering),
// bit flips and frames of an earlier incarnation, both directions at once, and for each planted bug the share of the
// schedules that notice it.

#include "world/transport/reliable.h"

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <string>

#include "base/random.h"

namespace echelon {
namespace {

struct Weather {
  double drop = 0, duplicate = 0, corrupt = 0, slow = 0, stale = 0;
};

// Random numbers one after another.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_({seed, 0, 0, stream_layer("reliable_test")}) {}
  bool chance(double p) { return stream_.uniform(next_++) < p; }
  std::uint32_t below(std::uint32_t n) { return stream_.below(n, next_++); }
  double uniform() { return stream_.uniform(next_++); }

 private:
  Stream stream_;
  std::uint64_t next_ = 0;
};

WireMessage message(int side, std::uint32_t number, Dice& dice) {
  WireMessage m{
      .channel = dice.below(5), .label = {.kind = OperationKind::plain, .step = 1, .number = number}, .bytes = {}};
  m.bytes.resize(dice.below(60));
  for (auto& b : m.bytes) b = static_cast<std::byte>(dice.below(256));
  m.bytes.push_back(static_cast<std::byte>(side));
  return m;
}

bool same(const WireMessage& a, const WireMessage& b) {
  return a.channel == b.channel && a.label == b.label && a.bytes == b.bytes;
}

struct Flight {
  double arrives;
  std::uint64_t order;
  int to;
  std::vector<std::byte> bytes;
  bool operator>(const Flight& o) const { return std::tie(arrives, order) > std::tie(o.arrives, o.order); }
};

// Two ends exchange `count` messages each way. Returns what went wrong; empty: all arrived, once and in order.
std::string exchange(std::uint64_t seed, const Weather& weather, std::uint32_t count, const PlantedBugs& bugs,
                     ReliableCounts* counts = nullptr) {
  Dice dice(seed);
  ReliableOptions options{.first_timeout = 0.02, .most_tries = 40, .window = 1 + dice.below(20)};
  ReliableLink ends[2] = {{{0, 1, 7}, options, bugs}, {{1, 0, 7}, options, bugs}};
  ReliableLink ghosts[2] = {{{0, 1, 6}, {.window = 10'000}},
                            {{1, 0, 6}, {.window = 10'000}}};  // of an earlier incarnation
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> air;
  std::vector<WireMessage> sent[2], got[2];
  std::uint64_t order = 0;
  double now = 0;

  const auto fly = [&](int to, std::vector<std::byte> bytes) {
    if (dice.chance(weather.drop)) return;
    if (dice.chance(weather.corrupt))
      for (std::uint32_t flips = 1 + dice.below(3); flips > 0; --flips)
        bytes[dice.below(static_cast<std::uint32_t>(bytes.size()))] ^= std::byte{1} << dice.below(8);
    const double delay = 0.001 * (1 + dice.uniform()) + (dice.chance(weather.slow) ? 0.03 * dice.uniform() : 0);
    air.push({now + delay, order++, to, std::move(bytes)});
  };
  const auto pump = [&](int side) -> std::string {
    std::vector<std::byte> frame;
    while (ends[side].next_frame(frame)) {
      if (dice.chance(weather.duplicate)) fly(1 - side, frame);
      fly(1 - side, std::move(frame));
    }
    for (WireMessage m; ends[side].next_message(m); got[side].push_back(m)) {
      const std::size_t i = got[side].size();
      if (i >= sent[1 - side].size() || !same(m, sent[1 - side][i])) return "a wrong message was delivered";
    }
    return ends[side].lost() ? "the peer was given up" : "";
  };

  for (std::uint64_t turn = 0; turn < 200'000; ++turn) {
    for (const int side : {0, 1})
      if (sent[side].size() < count && dice.chance(0.3)) {
        sent[side].push_back(message(side, static_cast<std::uint32_t>(sent[side].size()), dice));
        ends[side].send(sent[side].back(), now);
        if (dice.chance(weather.stale)) {
          std::vector<std::byte> frame;
          ghosts[side].send(message(side, 1000, dice), now);
          if (ghosts[side].next_frame(frame)) fly(1 - side, frame);
        }
        if (auto wrong = pump(side); !wrong.empty()) return wrong;
      }
    const double wake = std::min(ends[0].wake(), ends[1].wake());
    const bool all_sent = sent[0].size() == count && sent[1].size() == count;
    const double next =
        std::min(air.empty() ? wake : std::min(wake, air.top().arrives), all_sent ? 1e300 : now + 0.001);
    if (next >= 1e300) break;  // nothing is on its way and nobody wants to be woken
    now = next;
    while (!air.empty() && air.top().arrives <= now) {
      const Flight flight = air.top();
      air.pop();
      ends[flight.to].arrived(flight.bytes, now);
      if (auto wrong = pump(flight.to); !wrong.empty()) return wrong;
    }
    for (const int side : {0, 1})
      if (ends[side].wake() <= now) {
        ends[side].tick(now);
        if (auto wrong = pump(side); !wrong.empty()) return wrong;
      }
  }
  for (const int side : {0, 1}) {
    if (got[side].size() != count) return "messages are missing";
    if (!ends[side].idle()) return "the sender does not know that all has arrived";
  }
  if (counts) *counts = ends[0].counts();
  return "";
}

Weather random_weather(std::uint64_t seed) {
  Dice dice(seed ^ 0x5555);
  return {.drop = 0.3 * dice.uniform(),
          .duplicate = 0.3 * dice.uniform(),
          .corrupt = 0.2 * dice.uniform(),
          .slow = 0.5 * dice.uniform(),
          .stale = 0.2 * dice.uniform()};
}

TEST(Reliable, EachMessageOnceAndInOrderInAnyWeather) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed)
    ASSERT_EQ(exchange(seed, random_weather(seed), 40, {}), "") << "seed " << seed;
}

TEST(Reliable, InFineWeatherNothingIsSentTwice) {
  ReliableCounts counts;
  ASSERT_EQ(exchange(1, {}, 500, {}, &counts), "");
  EXPECT_EQ(counts.sent, 500u);
  EXPECT_EQ(counts.resent, 0u);
  EXPECT_EQ(counts.delivered, 500u);
  EXPECT_EQ(counts.corrupt + counts.duplicate + counts.strange + counts.too_early, 0u);
}

TEST(Reliable, TheWeatherDoesHappen) {
  ReliableCounts counts;
  ASSERT_EQ(exchange(3, {.drop = 0.2, .duplicate = 0.2, .corrupt = 0.2, .slow = 0.2, .stale = 0.2}, 500, {}, &counts),
            "");
  EXPECT_GT(counts.resent, 50u);
  EXPECT_GT(counts.corrupt, 50u);
  EXPECT_GT(counts.duplicate, 50u);
  EXPECT_GT(counts.strange, 50u);
}

TEST(Reliable, APeerThatNeverAnswersIsLostAfterTheLastTry) {
  ReliableLink link({0, 1, 0}, {.first_timeout = 1, .longest_timeout = 4, .most_tries = 5});
  link.send({}, 10);
  std::vector<double> times;
  for (std::vector<std::byte> frame; !link.lost(); link.tick(link.wake()))
    while (link.next_frame(frame)) times.push_back(link.wake());
  // Tries at 10, 11, 13, 17 and 21: the time doubles, up to the longest.
  EXPECT_EQ(times, (std::vector<double>{11, 13, 17, 21, 25}));
  EXPECT_EQ(link.wake(), std::numeric_limits<double>::infinity());
  std::vector<std::byte> frame;
  link.send({}, 30);
  EXPECT_FALSE(link.next_frame(frame));
}

TEST(Reliable, TheWindowBoundsWhatIsOnItsWay) {
  ReliableLink link({0, 1, 0}, {.window = 8});
  for (int i = 0; i < 100; ++i) link.send({}, 0);
  int frames = 0;
  for (std::vector<std::byte> frame; link.next_frame(frame);) ++frames;
  EXPECT_EQ(frames, 8);
}

struct Planted {
  const char* name;
  bool PlantedBugs::*bug;
};

class ReliablePlanted : public testing::TestWithParam<Planted> {};

TEST_P(ReliablePlanted, IsCaughtByRandomSchedules) {
  PlantedBugs bugs;
  bugs.*GetParam().bug = true;
  int caught = 0;
  constexpr int seeds = 100;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) caught += !exchange(seed, random_weather(seed), 40, bugs).empty();
  RecordProperty("caught_of_100", caught);
  printf("%s: caught by %d of %d schedules\n", GetParam().name, caught, seeds);
  EXPECT_GT(caught, seeds / 4);
}

INSTANTIATE_TEST_SUITE_P(Bugs, ReliablePlanted,
                         testing::Values(Planted{"skip_checksum", &PlantedBugs::skip_checksum},
                                         Planted{"accept_duplicates", &PlantedBugs::accept_duplicates},
                                         Planted{"deliver_out_of_order", &PlantedBugs::deliver_out_of_order},
                                         Planted{"never_retransmit", &PlantedBugs::never_retransmit},
                                         Planted{"acknowledge_gaps", &PlantedBugs::acknowledge_gaps},
                                         Planted{"wrap_sequence", &PlantedBugs::wrap_sequence},
                                         Planted{"ignore_epoch", &PlantedBugs::ignore_epoch},
                                         Planted{"wrong_channel", &PlantedBugs::wrong_channel},
                                         Planted{"no_ack_of_duplicates", &PlantedBugs::no_ack_of_duplicates},
                                         Planted{"renumber_retransmission", &PlantedBugs::renumber_retransmission},
                                         Planted{"resend_newest", &PlantedBugs::resend_newest},
                                         Planted{"short_timeout", &PlantedBugs::short_timeout}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace echelon
