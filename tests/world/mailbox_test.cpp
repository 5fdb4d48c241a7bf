// Messages (world/mailbox/mailbox.h) on every world of tests/world/all_worlds.h.

#include "world/mailbox/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "tests/support/allocations.h"
#include "tests/support/says.h"
#include "tests/world/all_worlds.h"

namespace echelon::test {
namespace {

class MailboxOnAllWorlds : public OnEveryWorld {};
INSTANTIATE_TEST_SUITE_P(World, MailboxOnAllWorlds, testing::ValuesIn(all_worlds()),
                         [](const auto& world) { return world.param.name; });

// The i-th message from one rank to another: everything in it follows from these three numbers.
struct Written {
  MessageHeader head;
  std::vector<std::byte> payload;
};
Written written(Rank from, Rank to, int i) {
  constexpr std::array<std::size_t, 8> sizes{0, 1, 48, 2048, 2049, 5000, 70000, 4};
  Written w;
  w.head = {.kind = static_cast<std::uint16_t>(7 * from + to),
            .tag = static_cast<std::uint16_t>(i % 3 == 0),
            .key = static_cast<std::uint32_t>(i * i),
            .clock = i,
            .number = 0.25 * i - from,
            .second = (std::uint64_t{1} << 60) + static_cast<std::uint64_t>(to)};
  w.payload.resize(sizes[static_cast<std::size_t>(i + from) % sizes.size()]);
  for (std::size_t b = 0; b < w.payload.size(); ++b)
    w.payload[b] = static_cast<std::byte>(b * 31 + static_cast<std::size_t>(i + 5 * from + 3 * to));
  return w;
}

bool same(const Message& message, const Written& w) {
  const auto& a = message.head;
  const auto& b = w.head;
  return a.kind == b.kind && a.tag == b.tag && a.key == b.key && a.clock == b.clock && a.number == b.number &&
         a.second == b.second && std::ranges::equal(message.payload(), w.payload);
}

// Takes `count` messages of the tag and requires that those of each rank come in order; `next` is what comes next.
void take_in_order(Mailbox& mailbox, Rank me, int tag, int count, std::map<Rank, int>& next) {
  Message message;
  for (int taken = 0; taken < count; ++taken) {
    require(mailbox.take(tag, message, forever), "a message");
    int& i = next[message.from];
    while (written(message.from, me, i).head.tag != tag) ++i;
    require(same(message, written(message.from, me, i)),
            fmt::format("message {} of rank {} as written", i, message.from));
    ++i;
  }
}

TEST_P(MailboxOnAllWorlds, MessagesFromAnybodyComeWholeAndInTheOrderOfEachSender) {
  constexpr int ranks = 4, count = 90;  // 30 of each for tag 1
  run(ranks, [](World& world) {
    Mailbox mailbox(world, 70000);
    const Rank me = world.rank();
    std::uint64_t bytes = 0, transfers = 0;
    for (int i = 0; i < count; ++i)
      for (Rank to = 0; to < ranks; ++to) {
        Written w = written(me, to, i);
        mailbox.post(to, w.head, w.payload);
        if (to != me) bytes += Mailbox::header_bytes + w.payload.size(), transfers += w.payload.empty() ? 1 : 2;
        std::ranges::fill(w.payload, std::byte{0xEE});  // it has been copied
      }
    std::map<Rank, int> in_box_1;
    const auto other_tag = world.spawn("tag 1", [&] { take_in_order(mailbox, me, 1, ranks * count / 3, in_box_1); });
    std::map<Rank, int> in_box_0;
    take_in_order(mailbox, me, 0, ranks * count * 2 / 3, in_box_0);
    other_tag->join();
    require(in_box_0.size() == ranks && in_box_1.size() == ranks, "everybody has written");
    mailbox.close();
    Message none;
    require(!mailbox.try_take(0, none) && !mailbox.try_take(1, none), "no more messages than were posted");
    const Mailbox::Counts sent = mailbox.sent();
    require(sent.messages == (ranks - 1) * count && sent.bytes == bytes && sent.transfers == transfers, "counts");
  });
}

TEST_P(MailboxOnAllWorlds, AMessageToOneselfCostsNoTransfer) {
  run(1, [](World& world) {
    Mailbox mailbox(world, 12);
    const std::array<float, 3> numbers{1, 2, 3};
    mailbox.post(0, {.tag = 3, .key = 9}, numbers);
    Message message;
    require(!mailbox.try_take(2, message) && mailbox.take(3, message, forever), "in its tag");
    require(message.from == 0 && message.head.key == 9 && std::ranges::equal(message.floats(), numbers), "as written");
    mailbox.close();
    require(mailbox.sent().messages == 0 && mailbox.sent().bytes == 0, "nothing was sent");
  });
}

TEST_P(MailboxOnAllWorlds, LargeMessagesBothWaysAtOnceDoNotWaitForEachOther) {
  constexpr std::size_t numbers = 700'000;
  run(3, [](World& world) {
    Mailbox mailbox(world, numbers * sizeof(float));
    std::vector<float> out(numbers);
    for (int i = 0; i < 4; ++i)
      for (Rank to = 0; to < 3; ++to) {
        std::ranges::fill(out, static_cast<float>(10 * i + world.rank()));
        mailbox.post(to, {.clock = i}, out);
      }
    std::array<int, 3> next{};
    for (int taken = 0; taken < 12; ++taken) {
      Message message;
      require(mailbox.take(0, message, forever), "a message");
      const auto expected = static_cast<float>(10 * next[static_cast<std::size_t>(message.from)]++ + message.from);
      require(message.floats().size() == numbers, "its size");
      require(std::ranges::all_of(message.floats(), [&](float f) { return f == expected; }), "its numbers");
    }
    mailbox.close();
  });
}

TEST_P(MailboxOnAllWorlds, ALostRankWakesWhoWaitsForMessagesAndIsNamed) {
  Tally named;
  const std::string said = failure_of<RankFailed>(3, [&](World& world) {
    Mailbox mailbox(world, 100);
    if (world.rank() == 2) {
      world.sleep(0.02);
      throw Failure("enough of this");
    }
    Message message;
    try {
      mailbox.take(1, message, forever);
    } catch (const PeerLost& lost) {
      if (lost.rank() == 2) named.add();
      throw;
    }
  });
  EXPECT_EQ(said, "rank 2: enough of this");
  EXPECT_EQ(named.count(), 2);
}

TEST_P(MailboxOnAllWorlds, BadInputOfARankWithAnOpenMailboxStaysBadInput) {
  EXPECT_EQ(failure_of<BadInput>(2,
                                 [](World& world) {
                                   Mailbox mailbox(world, 100);
                                   if (world.rank() == 1) bad_input("no such file");
                                   Message message;
                                   mailbox.take(0, message, forever);
                                 }),
            "no such file");
}

TEST_P(MailboxOnAllWorlds, ARankThatLeavesWithoutClosingItsMailboxBreaksTheWorld) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mailbox mailbox(world, 100);
    if (world.rank() == 0) mailbox.close();
  });
  EXPECT_TRUE(says(said, "without closing its mailbox"));
}

TEST_P(MailboxOnAllWorlds, AMessageThatIsTooLongIsNotSent) {
  run(2, [](World& world) {
    Mailbox mailbox(world, 100);
    bool refused = false;
    try {
      mailbox.post(1 - world.rank(), {}, std::vector<std::byte>(101));
    } catch (const Failure& failure) {
      refused = std::string(failure.what()).find("101 bytes") != std::string::npos;
    }
    mailbox.post(1 - world.rank(), {.key = 5}, std::vector<std::byte>(100));
    Message message;
    require(refused && mailbox.take(0, message, forever) && message.head.key == 5, "only the next one came");
    mailbox.close();
    require(mailbox.sent().messages == 1 && !mailbox.try_take(0, message), "and nothing else");
  });
}

// The receiver decides for itself before it takes any memory.
TEST_P(MailboxOnAllWorlds, AMessageThatIsLongerThanTheReceiverAllowsIsAFailureThere) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mailbox mailbox(world, world.rank() == 0 ? std::size_t{1} << 50 : 10);
    if (world.rank() == 0) mailbox.post(1, {}, std::vector<std::byte>(11));
    Message message;
    mailbox.take(0, message, forever);
  });
  EXPECT_TRUE(says(said, "rank 1: rank 0 sent a message of 11 bytes"));
  EXPECT_TRUE(says(said, "at most 10"));
}

TEST_P(MailboxOnAllWorlds, CloseWaitsForAllMessagesAndThenThereMayBeAnotherMailbox) {
  constexpr int ranks = 3, count = 200;
  run(ranks, [](World& world) {
    for (int round = 0; round < 2; ++round) {
      Mailbox mailbox(world, 5000);
      const std::vector<std::byte> payload(5000, static_cast<std::byte>(round + 1));
      if (world.rank() == 1) world.sleep(0.01);
      for (int i = 0; i < count; ++i)
        for (Rank to = 0; to < ranks; ++to)
          if (to != world.rank()) mailbox.post(to, {.clock = i}, payload);
      mailbox.close();
      Message message;
      int taken = 0;
      while (mailbox.try_take(0, message)) {
        require(std::ranges::equal(message.payload(), payload), "of this round");
        ++taken;
      }
      require(taken == (ranks - 1) * count, fmt::format("{} messages after the close", taken));
      for (Rank to = 0; to < ranks; ++to) {
        bool refused = false;
        try {
          mailbox.post(to, {});
        } catch (const Failure&) {
          refused = true;
        }
        require(refused, "nothing can be posted after the close");
      }
      require(!mailbox.take(0, message, forever), "nor is anything waited for");
    }
  });
}

TEST_P(MailboxOnAllWorlds, ARankThatDoesNotCloseInTimeIsNamed) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mailbox mailbox(world, 100);
    world.set_status("a long walk");
    if (world.rank() == 1) {
      Message message;
      mailbox.take(0, message, forever);
    }
    mailbox.close(0.05);
  });
  EXPECT_TRUE(says(said, "rank 0: rank 1 does not close its mailbox"));
}

TEST_P(MailboxOnAllWorlds, WaitingForAMessageEndsAtTheDeadlineOrWhenTheTagIsShut) {
  run(2, [](World& world) {
    Mailbox mailbox(world, 100);
    Message message;
    const double before = world.now();
    require(!mailbox.take(0, message, before + 0.02) && world.now() >= before + 0.02, "false at the deadline");
    bool was_shut = false;
    const auto taker = world.spawn("taker", [&] {
      Message mine;
      was_shut = !mailbox.take(2, mine, forever);
    });
    world.sleep(0.01);
    mailbox.shut(1);
    mailbox.shut(2);
    taker->join();
    require(was_shut, "false when the tag is shut");
    mailbox.post(1 - world.rank(), {.tag = 1, .key = 3});
    mailbox.close();
    require(mailbox.take(1, message, forever) && message.head.key == 3, "what comes to a shut tag is kept");
    require(!mailbox.take(1, message, forever), "until it is empty");
  });
}

TEST_P(MailboxOnAllWorlds, RanksMayHaveFewCorrespondents) {
  run(4, [](World& world) {  // a star: rank 0 in the middle
    const std::vector<Rank> peers = world.rank() == 0 ? std::vector<Rank>{1, 2, 3} : std::vector<Rank>{0};
    Mailbox mailbox(world, 8, peers);
    Message message;
    if (world.rank() == 0) {
      for (int i = 0; i < 3; ++i) {
        require(mailbox.take(0, message, forever), "a question");
        mailbox.post(message.from, {.key = 2 * message.head.key});
      }
    } else {
      mailbox.post(0, {.key = static_cast<std::uint32_t>(world.rank())});
      require(mailbox.take(0, message, forever), "an answer");
      require(message.head.key == 2 * static_cast<std::uint32_t>(world.rank()), "to its own question");
      bool refused = false;
      try {
        mailbox.post(world.rank() % 3 + 1, {});
      } catch (const Failure&) {
        refused = true;
      }
      require(refused, "no messages to others");
    }
    mailbox.close();
  });
}

TEST_P(MailboxOnAllWorlds, MessagesAllocateNothingOnceWarm) {
  if (!allocations_are_counted() || !GetParam().real_time || GetParam().allocates) GTEST_SKIP();
  run(2, [](World& world) {
    Mailbox mailbox(world, 300'000);
    const std::vector<std::byte> large(300'000), small(300);
    Message message;
    const auto exchange = [&] {
      mailbox.post(1 - world.rank(), {}, large);
      mailbox.post(1 - world.rank(), {}, small);
      mailbox.post(1 - world.rank(), {});
      mailbox.post(world.rank(), {}, small);
      for (int i = 0; i < 4; ++i) require(mailbox.take(0, message, forever), "a message");
    };
    // The pool grows whenever more messages are under way than ever before, which may happen late, but not every time.
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < 20; ++round) {
      const std::int64_t before = allocations();
      for (int i = 0; i < 50; ++i) exchange();
      fewest = std::min(fewest, allocations() - before);
    }
    mailbox.close();
    require(fewest == 0, fmt::format("no allocations; there were {} in 200 messages", fewest));
  });
}

// Servers that answer whoever comes first: the order of arrival decides everything, and it is the same every time.
std::uint64_t hash_of_a_simulated_scheduler(std::uint64_t seed) {
  const SimReport report = run_in_simulation(SimCluster::uniform(9, 1e-5, 1e8), {.seed = seed}, [](World& world) {
    Mailbox mailbox(world, 4000);
    Message message;
    const Stream random = world.random("messages");
    if (world.rank() < 2) {
      for (int i = 0; i < 7 * 50; ++i) {
        require(mailbox.take(0, message, forever), "a question");
        mailbox.post(message.from, {.key = message.head.key, .clock = i}, message.payload());
      }
    } else {
      for (std::uint32_t i = 0; i < 100; ++i) {
        world.sleep(1e-5 * random.uniform(i));
        mailbox.post(static_cast<Rank>(i % 2), {.key = i}, std::vector<std::byte>(40 * i));
        require(mailbox.take(0, message, forever) && message.head.key == i, "the answer");
      }
    }
    mailbox.close();
  });
  report.throw_if_failed();
  return report.trace_hash;
}

TEST(MailboxInSimulation, TheSameSeedGivesTheSameEvents) {
  EXPECT_EQ(hash_of_a_simulated_scheduler(1), hash_of_a_simulated_scheduler(1));
  EXPECT_NE(hash_of_a_simulated_scheduler(1), hash_of_a_simulated_scheduler(2));
}

// A reader for each pair would be 40,000 fibers, more than a process may have stacks for.
TEST(MailboxInSimulation, HundredsOfRanksMayAllWriteToEachOther) {
  constexpr int ranks = 200;
  run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {.stack_bytes = 64 << 10}, [](World& world) {
    Mailbox mailbox(world, 1024);
    for (Rank to = 0; to < ranks; ++to)
      mailbox.post(to, {.number = 1.0 * world.rank()}, std::as_bytes(std::span<const Rank>(&to, 1)));
    double sum = 0;
    Message message;
    for (int i = 0; i < ranks; ++i) {
      require(mailbox.take(0, message, forever), "a message");
      require(message.payload().size() == sizeof(Rank), "with its payload");
      sum += message.head.number;
    }
    require(sum == ranks * (ranks - 1) / 2, "one message of each");
    mailbox.close();
  }).throw_if_failed();
}

TEST(MailboxInSimulation, PostingTakesNoTime) {
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e6), {.seed = 1}, [](World& world) {
    Mailbox mailbox(world, 100'000);
    const std::vector<std::byte> payload(100'000);  // a tenth of a second on the wire
    for (int i = 0; i < 10; ++i) mailbox.post(1 - world.rank(), {}, payload);
    require(world.now() == 0, "no time has passed");
    mailbox.close();
    require(world.now() > 1 && world.now() < 1.01, "until all have come");
  }).throw_if_failed();
}

TEST(MailboxInSimulation, MessagesOnTheirWayAreCountedUntilASlowLinkHasCarriedThem) {
  const auto cluster = SimCluster::uniform(2, 1e-6, 1e6);  // a millisecond for each of these
  run_in_simulation(cluster, {.seed = 1}, [&](World& w) {
    Mailbox mailbox(w, 1 << 20);
    const std::vector<std::byte> payload(1000);
    if (w.rank() == 0) {
      for (int i = 0; i < 5; ++i) mailbox.post(1, {.tag = 1}, payload);
      require(mailbox.on_their_way(1) == 5, "nothing has left yet");
      require(mailbox.on_their_way(0) == 0, "a rank has none to itself");
      w.sleep(0.0026);
      const std::size_t left = mailbox.on_their_way(1);
      require(left >= 2 && left <= 4, "some have left");
      w.sleep(1);
      require(mailbox.on_their_way(1) == 0, "all have left");
    }
    mailbox.close();
  }).throw_if_failed();
}

TEST(MailboxInSimulation, ACrashedRankIsLostToThoseWhoWaitForItsMessages) {
  SimOptions options{.seed = 3};
  options.faults.crashes.push_back({.rank = 1, .at = 0.5});
  int named = 0;
  const SimReport report = run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), options, [&](World& world) {
    Mailbox mailbox(world, 100);
    Message message;
    try {
      mailbox.take(0, message, forever);
    } catch (const PeerLost& lost) {
      named += lost.rank() == 1;
      throw;
    }
  });
  EXPECT_EQ(named, 2);
  EXPECT_LT(report.seconds, 5);
}

}  // namespace
}  // namespace echelon::test
