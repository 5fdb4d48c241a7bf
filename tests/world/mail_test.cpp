// Letters (world/mail.h) on every world of tests/world/all_worlds.h.

#include "world/mail.h"

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

constexpr double forever = std::numeric_limits<double>::infinity();

class MailOnAllWorlds : public testing::TestWithParam<WorldUnderTest> {
 protected:
  void run(int ranks, const Program& program) { GetParam().run(ranks, program); }
  template <typename E>
  std::string failure_of(int ranks, const Program& program) {
    try {
      run(ranks, program);
    } catch (const E& error) {
      return error.what();
    }
    ADD_FAILURE() << "the launcher did not throw what it should";
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(World, MailOnAllWorlds, testing::ValuesIn(all_worlds()),
                         [](const auto& world) { return world.param.name; });

// The i-th letter from one rank to another: everything in it follows from these three numbers.
struct Written {
  LetterHead head;
  std::vector<std::byte> payload;
};
Written written(Rank from, Rank to, int i) {
  constexpr std::array<std::size_t, 8> sizes{0, 1, 48, 2048, 2049, 5000, 70000, 4};
  Written w;
  w.head = {.kind = static_cast<std::uint16_t>(7 * from + to),
            .box = static_cast<std::uint16_t>(i % 3 == 0),
            .key = static_cast<std::uint32_t>(i * i),
            .clock = i,
            .number = 0.25 * i - from,
            .second = (std::uint64_t{1} << 60) + static_cast<std::uint64_t>(to)};
  w.payload.resize(sizes[static_cast<std::size_t>(i + from) % sizes.size()]);
  for (std::size_t b = 0; b < w.payload.size(); ++b)
    w.payload[b] = static_cast<std::byte>(b * 31 + static_cast<std::size_t>(i + 5 * from + 3 * to));
  return w;
}

bool same(const Letter& letter, const Written& w) {
  const auto& a = letter.head;
  const auto& b = w.head;
  return a.kind == b.kind && a.box == b.box && a.key == b.key && a.clock == b.clock && a.number == b.number &&
         a.second == b.second && std::ranges::equal(letter.payload(), w.payload);
}

// Takes `count` letters of the box and requires that those of each rank come in order; `next` is what comes next.
void take_in_order(Mail& mail, Rank me, int box, int count, std::map<Rank, int>& next) {
  Letter letter;
  for (int taken = 0; taken < count; ++taken) {
    require(mail.take(box, letter, forever), "a letter");
    int& i = next[letter.from];
    while (written(letter.from, me, i).head.box != box) ++i;
    require(same(letter, written(letter.from, me, i)), fmt::format("letter {} of rank {} as written", i, letter.from));
    ++i;
  }
}

TEST_P(MailOnAllWorlds, LettersFromAnybodyComeWholeAndInTheOrderOfEachSender) {
  constexpr int ranks = 4, count = 90;  // 30 of each for box 1
  run(ranks, [](World& world) {
    Mail mail(world, 70000);
    const Rank me = world.rank();
    std::uint64_t bytes = 0, messages = 0;
    for (int i = 0; i < count; ++i)
      for (Rank to = 0; to < ranks; ++to) {
        Written w = written(me, to, i);
        mail.post(to, w.head, w.payload);
        if (to != me) bytes += Mail::header_bytes + w.payload.size(), messages += w.payload.empty() ? 1 : 2;
        std::ranges::fill(w.payload, std::byte{0xEE});  // it has been copied
      }
    std::map<Rank, int> in_box_1;
    const auto other_box = world.spawn("box 1", [&] { take_in_order(mail, me, 1, ranks * count / 3, in_box_1); });
    std::map<Rank, int> in_box_0;
    take_in_order(mail, me, 0, ranks * count * 2 / 3, in_box_0);
    other_box->join();
    require(in_box_0.size() == ranks && in_box_1.size() == ranks, "everybody has written");
    mail.close();
    Letter none;
    require(!mail.try_take(0, none) && !mail.try_take(1, none), "no more letters than were posted");
    const Mail::Counts sent = mail.sent();
    require(sent.letters == (ranks - 1) * count && sent.bytes == bytes && sent.messages == messages, "counts");
  });
}

TEST_P(MailOnAllWorlds, ALetterToOneselfCostsNoMessage) {
  run(1, [](World& world) {
    Mail mail(world, 12);
    const std::array<float, 3> numbers{1, 2, 3};
    mail.post(0, {.box = 3, .key = 9}, numbers);
    Letter letter;
    require(!mail.try_take(2, letter) && mail.take(3, letter, forever), "in its box");
    require(letter.from == 0 && letter.head.key == 9 && std::ranges::equal(letter.floats(), numbers), "as written");
    mail.close();
    require(mail.sent().letters == 0 && mail.sent().bytes == 0, "nothing was sent");
  });
}

TEST_P(MailOnAllWorlds, LargeLettersBothWaysAtOnceDoNotWaitForEachOther) {
  constexpr std::size_t numbers = 700'000;
  run(3, [](World& world) {
    Mail mail(world, numbers * sizeof(float));
    std::vector<float> out(numbers);
    for (int i = 0; i < 4; ++i)
      for (Rank to = 0; to < 3; ++to) {
        std::ranges::fill(out, static_cast<float>(10 * i + world.rank()));
        mail.post(to, {.clock = i}, out);
      }
    std::array<int, 3> next{};
    for (int taken = 0; taken < 12; ++taken) {
      Letter letter;
      require(mail.take(0, letter, forever), "a letter");
      const auto expected = static_cast<float>(10 * next[static_cast<std::size_t>(letter.from)]++ + letter.from);
      require(letter.floats().size() == numbers, "its size");
      require(std::ranges::all_of(letter.floats(), [&](float f) { return f == expected; }), "its numbers");
    }
    mail.close();
  });
}

TEST_P(MailOnAllWorlds, ALostRankWakesWhoWaitsForLettersAndIsNamed) {
  Tally named;
  const std::string said = failure_of<RankFailed>(3, [&](World& world) {
    Mail mail(world, 100);
    if (world.rank() == 2) {
      world.sleep(0.02);
      throw Failure("enough of this");
    }
    Letter letter;
    try {
      mail.take(1, letter, forever);
    } catch (const PeerLost& lost) {
      if (lost.rank() == 2) named.add();
      throw;
    }
  });
  EXPECT_EQ(said, "rank 2: enough of this");
  EXPECT_EQ(named.count(), 2);
}

TEST_P(MailOnAllWorlds, BadInputOfARankWithOpenMailStaysBadInput) {
  EXPECT_EQ(failure_of<BadInput>(2,
                                 [](World& world) {
                                   Mail mail(world, 100);
                                   if (world.rank() == 1) bad_input("no such file");
                                   Letter letter;
                                   mail.take(0, letter, forever);
                                 }),
            "no such file");
}

TEST_P(MailOnAllWorlds, ARankThatLeavesWithoutClosingItsMailBreaksTheWorld) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mail mail(world, 100);
    if (world.rank() == 0) mail.close();
  });
  EXPECT_TRUE(says(said, "without closing its mail"));
}

TEST_P(MailOnAllWorlds, ALetterThatIsTooLongIsNotSent) {
  run(2, [](World& world) {
    Mail mail(world, 100);
    bool refused = false;
    try {
      mail.post(1 - world.rank(), {}, std::vector<std::byte>(101));
    } catch (const Failure& failure) {
      refused = std::string(failure.what()).find("101 bytes") != std::string::npos;
    }
    mail.post(1 - world.rank(), {.key = 5}, std::vector<std::byte>(100));
    Letter letter;
    require(refused && mail.take(0, letter, forever) && letter.head.key == 5, "only the next one came");
    mail.close();
    require(mail.sent().letters == 1 && !mail.try_take(0, letter), "and nothing else");
  });
}

// The receiver decides for itself before it takes any memory.
TEST_P(MailOnAllWorlds, ALetterThatIsLongerThanTheReceiverAllowsIsAFailureThere) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mail mail(world, world.rank() == 0 ? std::size_t{1} << 50 : 10);
    if (world.rank() == 0) mail.post(1, {}, std::vector<std::byte>(11));
    Letter letter;
    mail.take(0, letter, forever);
  });
  EXPECT_TRUE(says(said, "rank 1: rank 0 sent a letter of 11 bytes"));
  EXPECT_TRUE(says(said, "at most 10"));
}

TEST_P(MailOnAllWorlds, CloseWaitsForAllLettersAndThenThereMayBeAnotherMail) {
  constexpr int ranks = 3, count = 200;
  run(ranks, [](World& world) {
    for (int round = 0; round < 2; ++round) {
      Mail mail(world, 5000);
      const std::vector<std::byte> payload(5000, static_cast<std::byte>(round + 1));
      if (world.rank() == 1) world.sleep(0.01);
      for (int i = 0; i < count; ++i)
        for (Rank to = 0; to < ranks; ++to)
          if (to != world.rank()) mail.post(to, {.clock = i}, payload);
      mail.close();
      Letter letter;
      int taken = 0;
      while (mail.try_take(0, letter)) {
        require(std::ranges::equal(letter.payload(), payload), "of this round");
        ++taken;
      }
      require(taken == (ranks - 1) * count, fmt::format("{} letters after the close", taken));
      for (Rank to = 0; to < ranks; ++to) {
        bool refused = false;
        try {
          mail.post(to, {});
        } catch (const Failure&) {
          refused = true;
        }
        require(refused, "nothing can be posted after the close");
      }
      require(!mail.take(0, letter, forever), "nor is anything waited for");
    }
  });
}

TEST_P(MailOnAllWorlds, ARankThatDoesNotCloseInTimeIsNamed) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    Mail mail(world, 100);
    world.doing("a long walk");
    if (world.rank() == 1) {
      Letter letter;
      mail.take(0, letter, forever);
    }
    mail.close(0.05);
  });
  EXPECT_TRUE(says(said, "rank 0: rank 1 does not close its mail"));
}

TEST_P(MailOnAllWorlds, WaitingForALetterEndsAtTheDeadlineOrWhenTheBoxIsShut) {
  run(2, [](World& world) {
    Mail mail(world, 100);
    Letter letter;
    const double before = world.now();
    require(!mail.take(0, letter, before + 0.02) && world.now() >= before + 0.02, "false at the deadline");
    bool was_shut = false;
    const auto taker = world.spawn("taker", [&] {
      Letter mine;
      was_shut = !mail.take(2, mine, forever);
    });
    world.sleep(0.01);
    mail.shut(1);
    mail.shut(2);
    taker->join();
    require(was_shut, "false when the box is shut");
    mail.post(1 - world.rank(), {.box = 1, .key = 3});
    mail.close();
    require(mail.take(1, letter, forever) && letter.head.key == 3, "what comes to a shut box is kept");
    require(!mail.take(1, letter, forever), "until it is empty");
  });
}

TEST_P(MailOnAllWorlds, RanksMayHaveFewCorrespondents) {
  run(4, [](World& world) {  // a star: rank 0 in the middle
    const std::vector<Rank> peers = world.rank() == 0 ? std::vector<Rank>{1, 2, 3} : std::vector<Rank>{0};
    Mail mail(world, 8, peers);
    Letter letter;
    if (world.rank() == 0) {
      for (int i = 0; i < 3; ++i) {
        require(mail.take(0, letter, forever), "a question");
        mail.post(letter.from, {.key = 2 * letter.head.key});
      }
    } else {
      mail.post(0, {.key = static_cast<std::uint32_t>(world.rank())});
      require(mail.take(0, letter, forever), "an answer");
      require(letter.head.key == 2 * static_cast<std::uint32_t>(world.rank()), "to its own question");
      bool refused = false;
      try {
        mail.post(world.rank() % 3 + 1, {});
      } catch (const Failure&) {
        refused = true;
      }
      require(refused, "no letters to others");
    }
    mail.close();
  });
}

TEST_P(MailOnAllWorlds, LettersAllocateNothingOnceWarm) {
  if (!allocations_are_counted() || !GetParam().real_time || GetParam().allocates) GTEST_SKIP();
  run(2, [](World& world) {
    Mail mail(world, 300'000);
    const std::vector<std::byte> large(300'000), small(300);
    Letter letter;
    const auto exchange = [&] {
      mail.post(1 - world.rank(), {}, large);
      mail.post(1 - world.rank(), {}, small);
      mail.post(1 - world.rank(), {});
      mail.post(world.rank(), {}, small);
      for (int i = 0; i < 4; ++i) require(mail.take(0, letter, forever), "a letter");
    };
    // The pool grows whenever more letters are under way than ever before, which may happen late, but not every time.
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < 20; ++round) {
      const std::int64_t before = allocations();
      for (int i = 0; i < 50; ++i) exchange();
      fewest = std::min(fewest, allocations() - before);
    }
    mail.close();
    require(fewest == 0, fmt::format("no allocations; there were {} in 200 letters", fewest));
  });
}

// Servers that answer whoever comes first: the order of arrival decides everything, and it is the same every time.
std::uint64_t hash_of_a_simulated_office(std::uint64_t seed) {
  const SimReport report = run_in_simulation(SimCluster::uniform(9, 1e-5, 1e8), {.seed = seed}, [](World& world) {
    Mail mail(world, 4000);
    Letter letter;
    const Stream random = world.random("letters");
    if (world.rank() < 2) {
      for (int i = 0; i < 7 * 50; ++i) {
        require(mail.take(0, letter, forever), "a question");
        mail.post(letter.from, {.key = letter.head.key, .clock = i}, letter.payload());
      }
    } else {
      for (std::uint32_t i = 0; i < 100; ++i) {
        world.sleep(1e-5 * random.uniform(i));
        mail.post(static_cast<Rank>(i % 2), {.key = i}, std::vector<std::byte>(40 * i));
        require(mail.take(0, letter, forever) && letter.head.key == i, "the answer");
      }
    }
    mail.close();
  });
  report.throw_if_failed();
  return report.trace_hash;
}

TEST(MailInSimulation, TheSameSeedGivesTheSameEvents) {
  EXPECT_EQ(hash_of_a_simulated_office(1), hash_of_a_simulated_office(1));
  EXPECT_NE(hash_of_a_simulated_office(1), hash_of_a_simulated_office(2));
}

// A reader for each pair would be 40,000 fibers, more than a process may have stacks for.
TEST(MailInSimulation, HundredsOfRanksMayAllWriteToEachOther) {
  constexpr int ranks = 200;
  run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {.stack_bytes = 64 << 10}, [](World& world) {
    Mail mail(world, 1024);
    for (Rank to = 0; to < ranks; ++to)
      mail.post(to, {.number = 1.0 * world.rank()}, std::as_bytes(std::span<const Rank>(&to, 1)));
    double sum = 0;
    Letter letter;
    for (int i = 0; i < ranks; ++i) {
      require(mail.take(0, letter, forever), "a letter");
      require(letter.payload().size() == sizeof(Rank), "with its payload");
      sum += letter.head.number;
    }
    require(sum == ranks * (ranks - 1) / 2, "one letter of each");
    mail.close();
  }).throw_if_failed();
}

TEST(MailInSimulation, PostingTakesNoTime) {
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e6), {.seed = 1}, [](World& world) {
    Mail mail(world, 100'000);
    const std::vector<std::byte> payload(100'000);  // a tenth of a second on the wire
    for (int i = 0; i < 10; ++i) mail.post(1 - world.rank(), {}, payload);
    require(world.now() == 0, "no time has passed");
    mail.close();
    require(world.now() > 1 && world.now() < 1.01, "until all have come");
  }).throw_if_failed();
}

TEST(MailInSimulation, LettersOnTheirWayAreCountedUntilASlowLinkHasCarriedThem) {
  const auto cluster = SimCluster::uniform(2, 1e-6, 1e6);  // a millisecond for each of these
  run_in_simulation(cluster, {.seed = 1}, [&](World& w) {
    Mail mail(w, 1 << 20);
    const std::vector<std::byte> payload(1000);
    if (w.rank() == 0) {
      for (int i = 0; i < 5; ++i) mail.post(1, {.box = 1}, payload);
      require(mail.on_their_way(1) == 5, "nothing has left yet");
      require(mail.on_their_way(0) == 0, "a rank has none to itself");
      w.sleep(0.0026);
      const std::size_t left = mail.on_their_way(1);
      require(left >= 2 && left <= 4, "some have left");
      w.sleep(1);
      require(mail.on_their_way(1) == 0, "all have left");
    }
    mail.close();
  }).throw_if_failed();
}

TEST(MailInSimulation, ACrashedRankIsLostToThoseWhoWaitForItsLetters) {
  SimOptions options{.seed = 3};
  options.faults.crashes.push_back({.rank = 1, .at = 0.5});
  int named = 0;
  const SimReport report = run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), options, [&](World& world) {
    Mail mail(world, 100);
    Letter letter;
    try {
      mail.take(0, letter, forever);
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
