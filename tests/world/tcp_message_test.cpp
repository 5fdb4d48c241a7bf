// Messages of the TCP world: every size, either order of asking and sending, with and without TLS.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/support/says.h"
#include "tests/world/messages.h"
#include "tests/world/tcp_threads.h"
#include "world/transport/tcp/frame_sender.h"

namespace echelon {
namespace {

using test::forever;
using test::label;
using test::random_bytes;
using test::run_on_loopback;

void finish(Work work) { ASSERT_TRUE(work.wait(forever)); }

class TcpMessages : public testing::TestWithParam<bool> {
 protected:
  test::TcpSettings settings() const {
    test::TcpSettings s;
    s.tls = GetParam();
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(Wire, TcpMessages, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

const std::size_t sizes[] = {0, 1, 79, 2048, 8192, 8193, 65536, 65537, 262144, 262145, 1000003, 5u << 20};

TEST_P(TcpMessages, EverySizeArrivesWhetherAskedForBeforeOrAfter) {
  run_on_loopback(
      2,
      [](World& w) {
        for (const bool early : {true, false}) {
          std::uint32_t number = early ? 0 : 100;
          for (const std::size_t bytes : sizes) {
            const auto sent = random_bytes(bytes, static_cast<int>(bytes) + w.rank());
            const auto expected = random_bytes(bytes, static_cast<int>(bytes) + 1 - w.rank());
            std::vector<std::byte> got(bytes);
            if (early == (w.rank() == 0)) {
              Work in = w.receive(1 - w.rank(), 1, label(number), got);
              w.sleep(0.005);
              Work out = w.send(1 - w.rank(), 1, label(number), sent);
              finish(std::move(in));
              finish(std::move(out));
            } else {
              Work out = w.send(1 - w.rank(), 1, label(number), sent);
              w.sleep(0.01);
              Work in = w.receive(1 - w.rank(), 1, label(number), got);
              finish(std::move(in));
              finish(std::move(out));
            }
            ASSERT_EQ(got, expected) << bytes;
            ++number;
          }
        }
      },
      settings());
}

TEST_P(TcpMessages, ASinkSeesEveryByteOnceInOrder) {
  run_on_loopback(
      2,
      [](World& w) {
        for (const std::size_t bytes : sizes) {
          const auto data = random_bytes(bytes, 5);
          if (w.rank() == 0) {
            finish(w.send(1, 0, label(1), data));
          } else {
            std::vector<std::byte> got;
            const Sink sink = {&got, [](void* self, std::size_t offset, std::span<const std::byte> piece) {
                                 auto& v = *static_cast<std::vector<std::byte>*>(self);
                                 ASSERT_EQ(offset, v.size());
                                 v.insert(v.end(), piece.begin(), piece.end());
                               }};
            finish(w.receive(0, 0, label(1), bytes, sink));
            ASSERT_EQ(got, data);
          }
        }
      },
      settings());
}

// Long and short messages on many channels between all pairs at once, sent and asked for in different orders.
TEST_P(TcpMessages, ManyChannelsBetweenAllPairsDoNotHinderEachOther) {
  constexpr int ranks = 4, channels = 7, rounds = 12;
  run_on_loopback(
      ranks,
      [](World& w) {
        const auto size_of = [](int from, int to, int channel, int round) {
          const Stream s({1, static_cast<std::uint32_t>(round), static_cast<std::uint32_t>(from * 8 + to), 0});
          return static_cast<std::size_t>(s.bits(channel) % (channel < 3 ? 300000 : 3000));
        };
        std::vector<std::vector<std::byte>> out, in, expected;
        std::vector<Work> works;
        struct Slot {
          int peer, channel, round;
        };
        std::vector<Slot> slots;
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer == w.rank()) continue;
          for (int c = 0; c < channels; ++c) {
            for (int r = 0; r < rounds; ++r) slots.push_back({peer, c, r});
          }
        }
        for (const auto& s : slots) {
          out.push_back(random_bytes(size_of(w.rank(), s.peer, s.channel, s.round), s.round + 100 * w.rank()));
          expected.push_back(random_bytes(size_of(s.peer, w.rank(), s.channel, s.round), s.round + 100 * s.peer));
          in.emplace_back(expected.back().size());
        }
        for (std::size_t i = 0; i < slots.size(); ++i) {
          works.push_back(w.send(slots[i].peer, static_cast<Channel>(slots[i].channel), label(1), out[i]));
        }
        for (int c = channels - 1; c >= 0; --c) {  // the other way round
          for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].channel != c) continue;
            works.push_back(w.receive(slots[i].peer, static_cast<Channel>(c), label(1), in[i]));
          }
        }
        for (auto& work : works) finish(std::move(work));
        ASSERT_EQ(in, expected);
      },
      settings());
}

// Nobody asks for the messages of channel 1 for a while: those of channel 2 must come all the same, and what the
// receiver holds stays within the window.
TEST_P(TcpMessages, AFullChannelDoesNotBlockAnother) {
  run_on_loopback(
      2,
      [](World& w) {
        constexpr int count = 3000;
        std::vector<std::byte> small(4096, std::byte{3}), got(4096), big(1 << 20, std::byte{4}), big_got(1 << 20);
        if (w.rank() == 0) {
          std::vector<Work> works;
          for (int i = 0; i < count; ++i) works.push_back(w.send(1, 1, label(0), small));
          finish(w.send(1, 2, label(0), big));
          for (auto& work : works) finish(std::move(work));
        } else {
          finish(w.receive(0, 2, label(0), big_got));
          ASSERT_EQ(big_got, big);
          for (int i = 0; i < count; ++i) finish(w.receive(0, 1, label(0), got));
          ASSERT_EQ(got, small);
        }
      },
      settings());
}

TEST_P(TcpMessages, AWaitEndsAtItsDeadlineAndCanBeTakenUpAgain) {
  run_on_loopback(
      2,
      [](World& w) {
        std::vector<std::byte> data(100000, std::byte{1}), got(100000);
        if (w.rank() == 0) {
          Work in = w.receive(1, 0, label(0), got);
          const double begin = w.now();
          EXPECT_FALSE(in.wait(begin + 0.05));
          EXPECT_GE(w.now() - begin, 0.05);
          finish(w.send(1, 0, label(0), std::span(data).first(1)));
          finish(std::move(in));
          EXPECT_EQ(got, data);
        } else {
          finish(w.receive(0, 0, label(0), std::span(got).first(1)));
          finish(w.send(0, 0, label(0), data));
        }
      },
      settings());
}

TEST(TcpMismatch, DescribesBothSides) {
  struct Case {
    Label sent, expected;
    std::size_t sent_bytes, expected_bytes;
  };
  const Label reduce = {OperationKind::all_reduce, 1, 2, 7}, broadcast = {OperationKind::broadcast, 1, 2, 7};
  for (const Case& c :
       {Case{reduce, broadcast, 16, 16}, Case{reduce, reduce, 16, 32}, Case{reduce, broadcast, 1 << 20, 1 << 20},
        Case{reduce, reduce, 1 << 20, 32}, Case{reduce, reduce, 32, 1 << 20}}) {
    for (const bool early : {true, false}) {
      const auto failures = test::run_ranks(test::make_configs(2), [&](World& w) {
        std::vector<std::byte> buffer(2 << 20);
        if (w.rank() == 0) {
          if (early) w.sleep(0.03);
          Work out = w.send(1, 0, c.sent, std::span(buffer).first(c.sent_bytes));
          out.wait(forever);
          w.receive(1, 5, {}, std::span(buffer).first(1)).wait(forever);
        } else {
          if (!early) w.sleep(0.03);
          w.receive(0, 0, c.expected, std::span(buffer).first(c.expected_bytes)).wait(forever);
        }
      });
      EXPECT_THROW(std::rethrow_exception(failures[1]), Mismatch);
      EXPECT_TRUE(test::says(test::text_of(failures[1]), "rank 0 sent all-reduce 7"));
      EXPECT_TRUE(test::says(test::text_of(failures[1]), std::to_string(c.sent_bytes) + " bytes"));
      EXPECT_TRUE(test::says(test::text_of(failures[1]), std::to_string(c.expected_bytes) + " bytes"));
      EXPECT_TRUE(test::says(test::text_of(failures[0]), "rank 1 was lost"));
    }
  }
}

// No beat comes to the rescue here: what has been read with the last words of the handshake must not wait for one.
TEST(TcpTls, WhatIsSaidRightAfterTheHandshakeIsHeardAtOnce) {
  for (int round = 0; round < 20; ++round) {
    test::TcpSettings settings;
    settings.tls = true;
    settings.silence_seconds = 1e6;
    auto configs = test::make_configs(3, settings);
    for (tcp::RankConfig& config : configs) config.beat_seconds = 1e5;
    const auto failures = test::run_ranks(configs, [](World& w) {
      const auto sent = random_bytes(500, w.rank());
      std::vector<std::byte> got(500);
      for (Rank other = 0; other < 3; ++other)
        if (other != w.rank()) w.send(other, 1, label(0), sent).wait(forever);
      for (Rank other = 0; other < 3; ++other) {
        if (other == w.rank()) continue;
        if (!w.receive(other, 1, label(0), got).wait(forever)) fail("nothing from rank {}", other);
        if (got != random_bytes(500, other)) fail("not what rank {} sent", other);
      }
    });
    for (const auto& failure : failures) EXPECT_EQ(test::text_of(failure), "");
  }
}

TEST(FrameSender, TheOtherSideCannotNameChannelsWithoutEnd) {
  tcp::FrameSender sender(0, 1, 1);
  for (std::size_t channel = 0; channel < tcp::most_channels; ++channel)
    sender.hear_ready(static_cast<Channel>(channel), 0);
  sender.hear_ready(5, 1);  // known
  EXPECT_THROW(sender.hear_ready(tcp::most_channels, 0), Failure);
}

}  // namespace
}  // namespace echelon
