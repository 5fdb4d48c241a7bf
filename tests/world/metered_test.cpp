// A world that counts, and one behind a slow link (world/wrappers/metered.h). In a simulated world with an endlessly
// fast network inside, times are exact; on real clocks only that nothing is faster than the link.

#include "world/wrappers/metered.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/support/says.h"
#include "tests/world/all_worlds.h"
#include "world/mailbox/mailbox.h"

namespace echelon::test {
namespace {

constexpr double rate = 1e6, latency = 1e-3;
constexpr double close_enough = 1e-5;  // a wait in a simulated world takes at least a microsecond

// The program on metered ranks of a simulated world that is fast itself.
void run_metered(int ranks, const LinkLimit& limit, const std::function<void(World&)>& program) {
  run_in_simulation(SimCluster::uniform(ranks, 0, 1e18), {.seed = 7}, [&](World& inner) {
    const auto world = make_metered(inner, limit);
    program(*world);
  }).throw_if_failed();
}

void require_near(double value, double expected, const std::string& what) {
  require(std::abs(value - expected) < close_enough, fmt::format("{}: {} s, not {} s", what, value, expected));
}

// Every one of `senders` sends `count` messages to rank 0, which waits for them in the order of the sends.
double seconds_to_rank_0(int senders, int count, std::size_t bytes) {
  double took = 0;
  run_metered(senders + 1, {rate, latency}, [&](World& world) {
    std::vector<std::byte> memory(bytes * static_cast<std::size_t>(senders * count));
    std::vector<Work> works;
    for (int i = 0; i < count; ++i) {
      if (world.rank() > 0) works.push_back(world.send(0, 1, label(0), std::span(memory).first(bytes)));
      for (Rank from = 1; from <= senders && world.rank() == 0; ++from)
        works.push_back(world.receive(from, 1, label(0), std::span(memory).subspan(bytes * works.size(), bytes)));
    }
    for (Work& work : works) require(work.wait(forever), "done");
    if (world.rank() == 0) took = world.now();
  });
  return took;
}

TEST(Link, OneSenderGetsTheWholeRate) {
  EXPECT_NEAR(seconds_to_rank_0(1, 1, 50'000), 0.05 + latency, close_enough);
  EXPECT_NEAR(seconds_to_rank_0(1, 20, 50'000), 1.0 + latency, close_enough);
}

TEST(Link, SendersToOneRankShareItsWire) {
  EXPECT_NEAR(seconds_to_rank_0(3, 10, 50'000), 1.5 + latency, close_enough);
  EXPECT_NEAR(seconds_to_rank_0(3, 1, 50'000), 0.15 + latency, close_enough);
}

TEST(Link, WhatOneRankSendsToSeveralLeavesOneAfterTheOther) {
  run_metered(4, {rate, latency}, [](World& world) {
    std::vector<std::byte> memory(100'000);
    if (world.rank() == 0) {
      std::vector<Work> works;
      for (Rank to = 1; to < 4; ++to) works.push_back(world.send(to, 1, label(0), memory));
      require(world.now() == 0, "sending waits for nothing");
      for (Work& work : works) require(work.wait(forever), "sent");
    } else {
      require(world.receive(0, 1, label(0), memory).wait(forever), "received");
    }
    require_near(world.now(), 0.1 * std::max(world.rank(), world.rank() == 0 ? 3 : 0) + latency, "when it is there");
  });
}

TEST(Link, BothWaysAtOnceTakeNoLonger) {
  run_metered(2, {rate, latency}, [](World& world) {
    std::vector<std::byte> out(100'000), in(100'000);
    Work sent = world.send(1 - world.rank(), 1, label(0), out);
    Work received = world.receive(1 - world.rank(), 1, label(0), in);
    require(sent.wait(forever) && received.wait(forever), "both");
    require_near(world.now(), 0.1 + latency, "full duplex");
  });
}

TEST(Link, LatencyDelaysAMessageButNotTheNextOne) {
  run_metered(2, {rate, 0.5}, [](World& world) {
    std::vector<std::byte> memory(10'000);
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i)
      works.push_back(world.rank() == 0 ? world.send(1, 1, label(0), std::span(memory).first(1000))
                                        : world.receive(0, 1, label(0), std::span(memory).first(1000)));
    for (Work& work : works) require(work.wait(forever), "done");
    require_near(world.now(), 0.01 + 0.5, "ten messages in a row");
  });
}

TEST(Link, TheWireWorksWhileTheReceiverDoesSomethingElse) {
  run_metered(3, {rate, 0}, [](World& world) {
    std::vector<std::byte> a(100'000), b(100'000);
    if (world.rank() > 0) {
      require(world.send(0, 1, label(0), a).wait(forever), "sent");
      return;
    }
    Work one = world.receive(1, 1, label(0), a), two = world.receive(2, 1, label(0), b);
    world.sleep(0.15);
    require(one.wait(forever), "the first has come meanwhile");
    require_near(world.now(), 0.15, "the first");
    require(two.wait(forever), "and half of the second");
    require_near(world.now(), 0.2, "the second");
  });
}

TEST(Link, AWaitEndsAtItsDeadline) {
  run_metered(3, {rate, 0}, [](World& world) {
    std::vector<std::byte> a(100'000), b(100'000);
    if (world.rank() > 0) {
      Work sent = world.send(0, 1, label(0), a);
      require(!sent.finished() && !sent.wait(0.05), "it has not left");
      require_near(world.now(), 0.05, "the sender's deadline");
      require(sent.wait(forever) && sent.finished(), "now it has");
      return;
    }
    Work one = world.receive(1, 1, label(0), a), two = world.receive(2, 1, label(0), b);
    require(one.wait(forever), "the first");
    require(!two.finished() && !two.wait(0.15), "the wire is busy with the second");
    require_near(world.now(), 0.15, "the receiver's deadline");
    require(!two.finished() && two.wait(forever) && two.finished(), "then it comes");
    require_near(world.now(), 0.2, "the second");
  });
}

TEST(Link, AnAsideIsFree) {  // messages of a rank to itself do not touch the wire, and are not counted
  run_metered(2, {rate, latency}, [](World& world) {
    std::vector<std::byte> out(100'000), in(100'000);
    Work sent = world.send(world.rank(), 1, label(0), out);
    require(world.receive(world.rank(), 1, label(0), in).wait(forever) && sent.wait(forever), "to itself");
    require(world.now() < latency && world.sent()->messages == 0, "costs nothing");
  });
}

TEST(Meter, CountsWhatIsSentToOthers) {
  for (const LinkLimit& limit : {LinkLimit{}, LinkLimit{rate, latency}})
    run_metered(3, limit, [&](World& world) {
      std::vector<std::byte> memory(300);
      std::vector<Work> works;
      for (Rank to = 0; to < 3; ++to)
        for (int i = 0; i < world.rank(); ++i)
          works.push_back(world.send(to, 1, label(0), std::span(memory).first(100)));
      for (Rank from = 0; from < 3; ++from)
        for (int i = 0; i < from; ++i) works.push_back(world.receive(from, 1, label(0), std::span(memory).first(100)));
      for (Work& work : works) require(work.wait(forever), "done");
      const auto messages = static_cast<std::uint64_t>(2 * world.rank());
      require(world.sent()->messages == messages && world.sent()->bytes == 100 * messages, "counts");
    });
}

TEST(Meter, CountsBytesByTheRankTheyGoTo) {
  run_metered(3, {}, [](World& world) {
    std::vector<std::byte> out(300), in(300);
    std::vector<Work> works;
    const auto size = [](Rank from, Rank to) { return static_cast<std::size_t>(100 * from + 10 * to + 1); };
    for (Rank to = 0; to < 3; ++to)
      works.push_back(world.send(to, 1, label(0), std::span(out).first(size(world.rank(), to))));
    for (Rank from = 0; from < 3; ++from)
      works.push_back(world.receive(from, 1, label(0), std::span(in).first(size(from, world.rank()))));
    for (Work& work : works) require(work.wait(forever), "done");
    const std::vector<std::uint64_t> bytes = bytes_to_peers(world);
    require(bytes.size() == 3, "one count for each rank");
    for (Rank to = 0; to < 3; ++to)
      require(bytes[static_cast<std::size_t>(to)] == (to == world.rank() ? 0 : size(world.rank(), to)), "its bytes");
  });
  run_in_simulation(SimCluster::uniform(2, 0, 1e18), {.seed = 7}, [](World& inner) {
    require(bytes_to_peers(inner).empty(), "nobody counts");
  }).throw_if_failed();
}

class LinkOnAllWorlds : public testing::TestWithParam<WorldUnderTest> {};
INSTANTIATE_TEST_SUITE_P(World, LinkOnAllWorlds, testing::ValuesIn(all_worlds()),
                         [](const auto& world) { return world.param.name; });

TEST_P(LinkOnAllWorlds, NothingIsFasterThanTheLinkAndEverythingComesWholeAndInOrder) {
  GetParam().run(3, [](World& inner) {
    constexpr double fast = 20e6;
    const auto world = make_metered(inner, {fast, latency});
    require(world->shared_memory() == nullptr, "no way around the link");
    constexpr std::array<std::size_t, 5> sizes{0, 100, 5000, 100'000, 400'000};
    const auto begin = world->now();
    std::vector<std::vector<unsigned char>> out, in;
    std::vector<Work> works;
    std::size_t sum = 0;
    for (Rank other = 0; other < 3; ++other)
      for (std::size_t i = 0; i < sizes.size() && other != world->rank(); ++i) {
        out.emplace_back(sizes[i], static_cast<unsigned char>(10 * world->rank() + static_cast<int>(i)));
        in.emplace_back(sizes[i]);
        sum += sizes[i];
        works.push_back(world->send(other, 1, label(0), std::as_bytes(std::span(out.back()))));
        works.push_back(world->receive(other, 1, label(0), std::as_writable_bytes(std::span(in.back()))));
      }
    for (Work& work : works) require(work.wait(forever), "done");
    const double least = static_cast<double>(sum) / fast;
    require(world->now() - begin >= 0.999 * least, "not faster than the link");
    std::size_t at = 0;
    for (Rank other = 0; other < 3; ++other)
      for (std::size_t i = 0; i < sizes.size() && other != world->rank(); ++i, ++at)
        for (const unsigned char c : in[at])
          require(c == static_cast<unsigned char>(10 * other + static_cast<int>(i)), "the bytes that were sent");
  });
}

// A message that would take an hour: its sender hears at once that it will never be taken.
TEST_P(LinkOnAllWorlds, ALostRankIsNoticedWhileAMessageWaitsForTheLink) {
  Tally named;
  std::string said;
  try {
    GetParam().run(2, [&](World& inner) {
      const auto world = make_metered(inner, {100, 0});
      std::vector<std::byte> memory(360'000);
      if (world->rank() == 1) {
        world->sleep(0.02);
        throw Failure("enough of this");
      }
      try {
        world->send(1, 1, label(0), memory).wait(forever);
      } catch (const PeerLost& lost) {
        if (lost.rank() == 1) named.add();
        throw;
      }
    });
  } catch (const RankFailed& failure) {
    said = failure.what();
  }
  EXPECT_EQ(said, "rank 1: enough of this");
  EXPECT_EQ(named.count(), 1);
}

TEST_P(LinkOnAllWorlds, MessagesGoOverTheLink) {
  GetParam().run(3, [](World& inner) {
    const auto world = make_metered(inner, {20e6, latency});
    Mailbox mailbox(*world, 100'000);
    const std::vector<std::byte> payload(100'000);
    const double begin = world->now();
    Message message;
    for (Rank to = 0; to < 3; ++to)
      mailbox.post(to, {.tag = 1});  // nobody's messages are on the link before this moment
    for (int i = 0; i < 3; ++i) require(mailbox.take(1, message, forever), "everybody is there");
    for (Rank to = 0; to < 3; ++to)
      for (std::uint32_t i = 0; i < 3; ++i) mailbox.post(to, {.key = i}, payload);
    std::array<std::uint32_t, 3> next{};
    for (int i = 0; i < 9; ++i) {
      require(mailbox.take(0, message, forever), "a message");
      require(message.head.key == next[static_cast<std::size_t>(message.from)]++, "in order");
    }
    require(world->now() - begin >= 0.999 * 600'000 / 20e6, "not faster than the link");
    mailbox.close();
    const std::uint64_t goodbyes = 2 * Mailbox::transfers_of_close;
    require(world->sent()->messages == mailbox.sent().transfers + goodbyes, "messages of messages");
    require(world->sent()->bytes == mailbox.sent().bytes + goodbyes * Mailbox::header_bytes, "bytes of messages");
  });
}

TEST(Metered, KeepsTheFirstMessagesForATraceIfAskedTo) {
  run_metered(2, {}, [&](World& world) {
    std::vector<std::byte> memory(100);
    const Rank other = 1 - world.rank();
    const auto exchange = [&](std::size_t bytes, OperationKind kind) {
      Work send = world.send(other, 1, {.kind = kind}, std::span(memory).first(bytes));
      std::vector<std::byte> into(bytes);
      Work receive = world.receive(other, 1, {.kind = kind}, into);
      require(send.wait(forever) && receive.wait(forever), "done");
    };
    exchange(7, OperationKind::plain);
    require(kept_messages(world).empty(), "nobody asked");
    keep_messages(world, 2);
    world.sleep(0.5);
    const double begin = world.now();
    exchange(10, OperationKind::all_reduce);
    world.sleep(0.5);
    exchange(20, OperationKind::barrier);
    exchange(30, OperationKind::barrier);
    const std::vector<SentMessage> kept = kept_messages(world);
    require(kept.size() == 2, "two at most");
    require(kept[0].bytes == 10 && kept[0].kind == OperationKind::all_reduce && kept[0].to == other, "the first");
    require(kept[1].bytes == 20 && kept[1].kind == OperationKind::barrier, "the second");
    require_near(kept[0].at, begin, "the first");
    require(kept[1].at >= begin + 0.5, "the second is sent half a second later");
  });
}

}  // namespace
}  // namespace echelon::test
