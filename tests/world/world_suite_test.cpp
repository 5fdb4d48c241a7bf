// What every world promises (world/world.h), tested on each of tests/world/all_worlds.h. The programs run in ranks that
// may be processes or fibers: they say what is wrong by throwing (`require`), and the launcher passes it on.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <numeric>

#include "tests/support/allocations.h"
#include "tests/support/says.h"
#include "tests/world/all_worlds.h"

namespace echelon::test {
namespace {

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }
std::span<std::byte> writable_bytes_of(auto&& values) { return std::as_writable_bytes(std::span(values)); }

// Bytes that tell where they come from and where they belong.
std::vector<std::uint64_t> pattern(std::size_t count, std::uint64_t salt) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (salt << 40) + i;
  return values;
}

class AllWorlds : public OnEveryWorld {};

INSTANTIATE_TEST_SUITE_P(World, AllWorlds, testing::ValuesIn(all_worlds()),
                         [](const auto& world) { return world.param.name; });

TEST_P(AllWorlds, EveryRankKnowsItsPlace) {
  for (const int ranks : {1, 3})
    run(ranks, [ranks](World& world) {
      require(world.size() == ranks && world.rank() >= 0 && world.rank() < ranks, "rank and size");
      require(static_cast<int>(world.place().host.size()) == ranks, "a host for every rank");
      require(!world.place().world.empty(), "the world has a name");
    });
}

TEST_P(AllWorlds, APingPongKeepsOrder) {
  run(2, [](World& world) {
    const Rank other = 1 - world.rank();
    for (std::uint32_t i = 0; i < 3000; ++i) {
      std::array<std::uint32_t, 2> ball{i, i * i}, back{};
      if (world.rank() == 0) require(world.send(other, 5, label(i), bytes_of(ball)).wait(forever), "sent");
      require(world.receive(other, 5, label(i), writable_bytes_of(back)).wait(forever), "received");
      require(back == ball, "the ball comes back unchanged");
      if (world.rank() == 1) require(world.send(other, 5, label(i), bytes_of(back)).wait(forever), "sent back");
    }
  });
}

TEST_P(AllWorlds, MessagesOfAnySizeArriveWhole) {
  run(2, [](World& world) {
    const Rank other = 1 - world.rank();
    for (const std::size_t bytes :
         {0, 1, 8, 63, 64, 65, 1000, 2047, 2048, 2049, 4096, 32727, 32728, 32729, 131071, 131072, 131073, 1000003}) {
      std::vector<unsigned char> out(bytes), in(bytes, 255);
      for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<unsigned char>(i * 31 + static_cast<unsigned>(world.rank()));
      Work sent = world.send(other, 0, label(0), bytes_of(out));
      require(world.receive(other, 0, label(0), writable_bytes_of(in)).wait(forever), "received");
      require(sent.wait(forever), "sent");
      for (std::size_t i = 0; i < bytes; ++i)
        require(in[i] == static_cast<unsigned char>(i * 31 + static_cast<unsigned>(other)), "the same bytes");
    }
  });
}

TEST_P(AllWorlds, ManyMessagesBeforeAnybodyListensArriveInOrder) {
  constexpr std::uint32_t count = 5000;  // more than a world would like to keep for later
  run(2, [](World& world) {
    const Rank other = 1 - world.rank();
    std::vector<std::uint32_t> out(count), in(count);
    std::iota(out.begin(), out.end(), 0u);
    std::vector<Work> works;
    for (std::uint32_t i = 0; i < count; ++i)
      works.push_back(world.send(other, 1, label(i), bytes_of(std::span(&out[i], 1))));
    for (std::uint32_t i = 0; i < count; ++i)
      works.push_back(world.receive(other, 1, label(i), writable_bytes_of(std::span(&in[i], 1))));
    for (Work& work : works) require(work.wait(forever), "done");
    require(in == out, "everything in order");
  });
}

TEST_P(AllWorlds, ChannelsDoNotWaitForEachOther) {
  constexpr int channels = 40;
  run(2, [](World& world) {
    // All are sent in one order, with small and large ones mixed, and received in the opposite order.
    std::vector<std::vector<std::uint64_t>> data;
    for (int c = 0; c < channels; ++c)
      data.push_back(world.rank() == 0 ? pattern(c % 3 == 0 ? 50000 : 5, static_cast<std::uint64_t>(c))
                                       : std::vector<std::uint64_t>(c % 3 == 0 ? 50000 : 5));
    if (world.rank() == 0) {
      std::vector<Work> works;
      for (int c = 0; c < channels; ++c)
        works.push_back(world.send(1, static_cast<Channel>(c), label(3), bytes_of(data[static_cast<std::size_t>(c)])));
      for (Work& work : works) require(work.wait(forever), "sent");
    } else {
      for (int c = channels - 1; c >= 0; --c) {
        auto& in = data[static_cast<std::size_t>(c)];
        require(world.receive(0, static_cast<Channel>(c), label(3), writable_bytes_of(in)).wait(forever), "received");
        require(in == pattern(in.size(), static_cast<std::uint64_t>(c)), "the channel's own message");
      }
    }
  });
}

TEST_P(AllWorlds, LargeMessagesBothWaysNeedNoCertainOrder) {
  for (const bool sends_first : {true, false})
    run(2, [sends_first](World& world) {
      const Rank other = 1 - world.rank();
      const auto out = pattern(1 << 18, static_cast<std::uint64_t>(world.rank()));
      std::vector<std::uint64_t> in(out.size());
      for (std::uint32_t i = 0; i < 3; ++i) {
        Work sent = world.send(other, 2, label(i), bytes_of(out));
        Work received = world.receive(other, 2, label(i), writable_bytes_of(in));
        require((sends_first ? sent : received).wait(forever) && (sends_first ? received : sent).wait(forever), "both");
        require(in == pattern(in.size(), static_cast<std::uint64_t>(other)), "the other's bytes");
      }
    });
}

TEST_P(AllWorlds, EverybodySendsToEverybody) {
  run(5, [](World& world) {
    const auto me = static_cast<std::uint64_t>(world.rank());
    std::vector<std::vector<std::uint64_t>> in;
    std::vector<Work> works;
    const auto out = pattern(3000, me);
    for (Rank r = 0; r < world.size(); ++r)
      works.push_back(world.send(r, 9, label(0), bytes_of(out)));  // also to itself
    for (Rank r = 0; r < world.size(); ++r) in.emplace_back(out.size());
    for (Rank r = 0; r < world.size(); ++r)
      works.push_back(world.receive(r, 9, label(0), writable_bytes_of(in[static_cast<std::size_t>(r)])));
    for (Work& work : works) require(work.wait(forever), "done");
    for (std::size_t r = 0; r < in.size(); ++r) require(in[r] == pattern(out.size(), r), "from the right one");
  });
}

TEST_P(AllWorlds, ASinkSeesEveryByteOnceAndInOrder) {
  struct Collector {
    std::vector<std::byte> bytes;
    bool in_order = true;
    static void take(void* self, std::size_t offset, std::span<const std::byte> piece) {
      auto& collector = *static_cast<Collector*>(self);
      collector.in_order &= offset == collector.bytes.size();
      collector.bytes.insert(collector.bytes.end(), piece.begin(), piece.end());
    }
  };
  run(2, [](World& world) {
    for (const std::size_t count : {1u, 100u, 1000u, 100000u}) {
      const auto data = pattern(count, 1);
      if (world.rank() == 0) {
        require(world.send(1, 0, label(1), bytes_of(data)).wait(forever), "sent");
      } else {
        Collector collector;
        require(world.receive(0, 0, label(1), count * 8, Sink{&collector, Collector::take}).wait(forever), "received");
        require(collector.in_order, "pieces in order");
        require(std::ranges::equal(collector.bytes, bytes_of(data)), "all the bytes");
      }
    }
  });
}

TEST_P(AllWorlds, MismatchesAreDescribedFromBothSides) {
  for (const std::size_t count : {8u, 8192u}) {  // one that travels at once, and one that does not
    const Program program = [count](World& world) {
      std::vector<std::uint64_t> data(count);
      if (world.rank() == 1) {
        world.send(0, 4, label(7, OperationKind::all_reduce), bytes_of(data)).wait(forever);
        world.receive(0, 4, label(8), writable_bytes_of(data)).wait(forever);  // until the other's failure ends it
      } else {
        data.resize(3);
        world.receive(1, 4, label(7, OperationKind::broadcast), writable_bytes_of(data)).wait(forever);
      }
    };
    const std::string said = failure_of<RankFailed>(2, program);
    for (const auto& words :
         {std::string("rank 0:"), std::string("rank 1 sent all-reduce 7"), fmt::format("{} bytes", count * 8),
          std::string("rank 0 expected broadcast 7"), std::string("24 bytes")})
      EXPECT_NE(said.find(words), std::string::npos) << said << "\nlacks: " << words;
  }
}

TEST_P(AllWorlds, AChannelGoesOnAfterAMismatchThatSomebodyCaught) {
  run(2, [](World& world) {
    std::vector<std::uint64_t> data(5000, 1), next(5000, 2);
    if (world.rank() == 1) {
      require(world.send(0, 4, label(7), bytes_of(data)).wait(forever), "the sender is not held up");
      require(world.send(0, 4, label(8), bytes_of(next)).wait(forever), "nor the next");
    } else {
      bool caught = false;
      try {
        world.receive(1, 4, label(6), writable_bytes_of(data)).wait(forever);
      } catch (const Mismatch&) {
        caught = true;
      }
      require(caught, "a Mismatch");
      require(world.receive(1, 4, label(8), writable_bytes_of(data)).wait(forever) && data == next, "the next message");
    }
  });
}

TEST_P(AllWorlds, AWaitEndsAtItsDeadlineAndCanBeContinued) {
  run(2, [](World& world) {
    std::vector<std::uint64_t> data(4000), go(1);
    if (world.rank() == 0) {
      Work work = world.receive(1, 0, label(1), writable_bytes_of(data));
      require(!work.wait(world.now()), "nothing has come, no time to wait");
      const double begun = world.now();
      require(!work.wait(begun + 0.02), "nothing has come");
      require(world.now() >= begun + 0.02 && !work.done(), "the deadline was awaited");
      world.send(1, 1, label(0), bytes_of(go)).wait(forever);
      require(work.wait(forever) && work.done() && data == pattern(4000, 9), "it comes in the end");
    } else {
      world.receive(0, 1, label(0), writable_bytes_of(go)).wait(forever);
      data = pattern(4000, 9);
      world.send(0, 0, label(1), bytes_of(data)).wait(forever);
    }
  });
}

// Everybody but rank 2 waits for it, in different ways, and each must hear who was lost and why; those who did are
// counted. The launcher reports rank 2, whatever the others do then.
Program losing_rank_two(const Program& end, const std::string& reason, Tally& heard_right) {
  return [end, reason, &heard_right](World& world) {
    std::vector<std::uint64_t> data(world.rank() % 2 == 0 ? 8 : 80000);
    if (world.rank() == 2) {
      world.sleep(0.05);
      end(world);
      return;
    }
    try {
      if (world.rank() == 3) {  // two that go on talking to each other hear it as well
        for (std::uint32_t i = 0;; ++i) world.send(4, 0, label(i), bytes_of(data)).wait(forever);
      } else if (world.rank() == 4) {
        data.resize(80000);
        for (std::uint32_t i = 0;; ++i) world.receive(3, 0, label(i), writable_bytes_of(data)).wait(forever);
      }
      world.receive(2, 0, label(7, OperationKind::all_reduce), writable_bytes_of(data)).wait(forever);
    } catch (const PeerLost& lost) {
      const std::string operation = world.rank() < 2 ? "all-reduce 7" : "message";
      if (lost.rank() == 2 && says(lost.what(), "rank 2 was lost") && says(lost.reason(), reason) &&
          says(lost.operation(), operation))
        heard_right.add();
      else
        std::fprintf(stderr, "rank %d heard: %s\n", world.rank(), lost.what());
    }
  };
}

TEST_P(AllWorlds, WhenARankThrowsAllOthersHearOfIt) {
  Tally heard;
  const auto end = [](World&) { throw Failure("no more paper in the tray"); };
  EXPECT_EQ(failure_of<RankFailed>(5, losing_rank_two(end, "no more paper in the tray", heard)),
            "rank 2: no more paper in the tray");
  EXPECT_EQ(heard.count(), 4);
}

TEST_P(AllWorlds, WhenARankGivesUpAllOthersHearOfIt) {
  Tally heard;
  const auto end = [](World& world) { world.abort("tired"); };
  EXPECT_EQ(failure_of<RankFailed>(5, losing_rank_two(end, "tired", heard)), "rank 2: tired");
  EXPECT_EQ(heard.count(), 4);
}

TEST_P(AllWorlds, WhenARankIsKilledOrExitsAllOthersHearOfIt) {
  if (!GetParam().own_memory) GTEST_SKIP();
  Tally heard;
  const auto killed = [](World&) { kill(getpid(), SIGKILL); };
  EXPECT_TRUE(says(failure_of<RankFailed>(5, losing_rank_two(killed, "", heard)), "rank 2: "));
  EXPECT_EQ(heard.count(), 4);
  const auto exits = [](World&) { _exit(3); };
  EXPECT_TRUE(says(failure_of<RankFailed>(5, losing_rank_two(exits, "", heard)), "rank 2: "));
  EXPECT_EQ(heard.count(), 8);
}

// Also one whose program simply returns while others still wait for it.
TEST_P(AllWorlds, NobodyWaitsForEverForARankThatHasEnded) {
  const std::string said = failure_of<RankFailed>(2, [](World& world) {
    std::uint64_t word = 1;
    if (world.rank() == 1) {
      require(world.send(0, 0, label(0), bytes_of(std::span(&word, 1))).wait(forever), "sent before the end");
      return;
    }
    world.sleep(0.02);
    require(world.receive(1, 0, label(0), writable_bytes_of(std::span(&word, 1))).wait(forever), "still arrives");
    world.receive(1, 0, label(1), writable_bytes_of(std::span(&word, 1))).wait(forever);
  });
  EXPECT_TRUE(says(said, "rank 0:"));
  EXPECT_TRUE(says(said, "message 1"));
  EXPECT_TRUE(says(said, "rank 1"));
}

TEST_P(AllWorlds, BadInputStaysBadInput) {
  const std::string said = failure_of<BadInput>(3, [](World& world) {
    std::uint64_t word = 0;
    if (world.rank() == 1) bad_input("there is no such file: {}", "a.txt");
    world.receive(1, 0, label(0), writable_bytes_of(std::span(&word, 1))).wait(forever);
  });
  EXPECT_EQ(said, "there is no such file: a.txt");
}

TEST_P(AllWorlds, WorkThatIsDroppedWhenTheWorldBreaksUsesItsMemoryNoMore) {
  failure_of<RankFailed>(3, [](World& world) {
    if (world.rank() == 2) {
      world.sleep(0.01);
      throw Failure("enough");
    }
    const Rank other = 1 - world.rank();
    for (std::uint32_t i = 0;; ++i) {
      // Gone with the exception, while the other may be reading it.
      const auto out = pattern(20000, 1);
      std::vector<std::uint64_t> in(out.size()), small(4);
      Work a = world.send(other, 0, label(i), bytes_of(out)),
           b = world.receive(other, 0, label(i), writable_bytes_of(in));
      Work never = world.receive(other, 1, label(i), writable_bytes_of(small));
      b.wait(forever);
      a.wait(forever);
      world.send(other, 1, label(i), bytes_of(small)).wait(forever);
      never.wait(forever);
    }
  });
}

TEST_P(AllWorlds, EventsCountAcrossTasks) {
  run(2, [](World& world) {
    const auto go = world.make_event(), done = world.make_event();
    require(!go->wait(1, world.now() + 0.01), "nothing yet");
    int seen = 0;
    const auto task = world.spawn("counter", [&] {
      for (std::uint64_t i = 1; i <= 1000; ++i) {
        require(go->wait(i, forever), "go");
        ++seen;
        done->notify();
      }
    });
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      go->notify();
      require(done->wait(i, forever) && seen == static_cast<int>(i), "the task has counted");
    }
    task->join();
    require(done->count() == 1000, "the event's count");
  });
}

TEST_P(AllWorlds, ATasksFailureComesOutOfJoin) {
  run(1, [](World& world) {
    const auto task = world.spawn("failing", [] { throw Failure("as expected"); });
    bool caught = false;
    try {
      task->join();
    } catch (const Failure& failure) {
      caught = std::string(failure.what()) == "as expected";
    }
    require(caught, "what the task threw");
  });
}

TEST_P(AllWorlds, TasksOfARankTalkAtOnceOnChannelsOfTheirOwn) {
  run(2, [](World& world) {
    const Rank other = 1 - world.rank();
    const auto talk = [&](Channel channel) {
      const std::size_t count = channel % 2 == 0 ? 20000 : 20;
      const auto out = pattern(count, channel);
      std::vector<std::uint64_t> in(count);
      for (std::uint32_t i = 0; i < 200; ++i) {
        Work sent = world.send(other, channel, label(i), bytes_of(out));
        Work received = world.receive(other, channel, label(i), writable_bytes_of(in));
        if (i % 2 == 0) require(received.wait(forever), "received");
        require(sent.wait(forever) && received.wait(forever) && in == out, "the channel's own message");
      }
    };
    std::vector<std::unique_ptr<Task>> tasks;
    for (Channel c = 1; c <= 3; ++c) tasks.push_back(world.spawn("talker", [&talk, c] { talk(c); }));
    talk(0);
    for (auto& task : tasks) task->join();
  });
}

TEST_P(AllWorlds, OthersSeeWhatARankIsDoing) {
  run(2, [](World& world) {
    std::uint64_t token = 0;
    const auto meet = [&] {
      Work a = world.send(1 - world.rank(), 0, label(0), bytes_of(std::span(&token, 1)));
      require(world.receive(1 - world.rank(), 0, label(0), writable_bytes_of(std::span(&token, 1))).wait(forever),
              "met");
      require(a.wait(forever), "met");
    };
    const auto expect = [&](const RankStatus& seen, const RankStatus& expected) {
      require(seen == expected, "the other's status: " + to_text(seen));
    };
    world.set_status(world.rank() == 0 ? "backward of conv2" : std::string(100, 'x'));
    if (world.rank() == 1) world.set_waiting_for(0);
    meet();
    const RankStatus first{.activity = "backward of conv2"}, second{std::string(63, 'x'), 0};
    expect(world.status_of(1 - world.rank()), world.rank() == 1 ? first : second);
    expect(world.status_of(world.rank()), world.rank() == 0 ? first : second);
    meet();
    if (world.rank() == 1) world.set_waiting_for(-1);
    meet();
    require(world.status_of(1).waiting_for == -1, "rank 1 no longer waits");
    meet();
  });
}

TEST_P(AllWorlds, RandomStreamsDifferByRankAndRepeat) {
  run(3, [](World& world) {
    const auto draw = [&](const char* purpose, std::uint32_t step) { return world.random(purpose, step).block(0); };
    const auto mine = draw("dropout", 1);
    require(mine == draw("dropout", 1), "the same again");
    require(mine != draw("dropout", 2) && mine != draw("shuffle", 1), "another step or purpose");
    if (world.rank() > 0) {
      require(world.send(0, 0, label(0), bytes_of(mine)).wait(forever), "sent");
    } else {
      std::array<std::uint32_t, 4> a{}, b{};
      require(world.receive(1, 0, label(0), writable_bytes_of(a)).wait(forever), "received");
      require(world.receive(2, 0, label(0), writable_bytes_of(b)).wait(forever), "received");
      require(a != b && a != mine && b != mine, "another rank");
    }
  });
}

TEST_P(AllWorlds, TimePassesWhileOneSleeps) {
  run(2, [](World& world) {
    const double begun = world.now();
    world.sleep(0.03);
    require(world.now() - begun >= 0.03, "slept");
    world.compute(1e6);
  });
}

TEST_P(AllWorlds, SharedMemoryIsSeenByAllAndBarriersKeepThemTogether) {
  run(4, [](World& world) {
    SharedMemory* shared = world.shared_memory();
    if (!shared) return;
    const auto n = static_cast<std::size_t>(world.size()), me = static_cast<std::size_t>(world.rank());
    const auto memory = shared->get("counters", n * 64);
    require(memory.size() == n * 64 && shared->contains(memory), "its size");
    require(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096 == 0, "aligned to a page");
    auto* counters = reinterpret_cast<std::uint64_t*>(memory.data());
    const auto barrier = shared->barrier("all", world.rank(), world.size());
    for (std::uint64_t round = 0; round < 500; ++round) {
      for (std::size_t r = 0; r < n; ++r) require(counters[r * 8] == round, "zero at first, then all have counted");
      require(barrier->wait(forever), "all have looked");
      ++counters[me * 8];
      require(barrier->wait(forever), "all have counted");
    }
    require(shared->get("counters", n * 64).data() == memory.data(), "the same again");
    require(shared->get("others", 64).data() != memory.data(), "another name, another region");
    bool caught = false;
    try {
      shared->get("counters", n * 32);
    } catch (const Mismatch&) {
      caught = true;
    }
    require(caught, "another size is a Mismatch");
    // Not all come: it ends at the deadline.
    if (world.rank() == 0) require(!shared->barrier("few", 0, 4)->wait(world.now() + 0.02), "alone at the barrier");
    require(barrier->wait(forever), "the last");
  });
}

TEST_P(AllWorlds, MessagesFromSharedMemoryAreReadInPlace) {
  run(2, [](World& world) {
    SharedMemory* shared = world.shared_memory();
    if (!shared) return;
    constexpr std::size_t count = 100000;
    const auto region = shared->get("data", count * 8);
    if (world.rank() == 0) {
      const auto data = pattern(count, 3);
      std::memcpy(region.data(), data.data(), region.size());
      require(world.send(1, 0, label(0), region).wait(forever), "sent");
    } else {
      struct Look {
        std::vector<std::pair<const std::byte*, std::size_t>> pieces;
      } look;
      const auto take = [](void* self, std::size_t, std::span<const std::byte> piece) {
        static_cast<Look*>(self)->pieces.emplace_back(piece.data(), piece.size());
      };
      require(world.receive(0, 0, label(0), region.size(), Sink{&look, take}).wait(forever), "received");
      require(
          look.pieces.size() == 1 && look.pieces[0].first == region.data() && look.pieces[0].second == region.size(),
          "the sender's own memory");
    }
  });
}

TEST_P(AllWorlds, ABarrierEndsWhenARankIsLost) {
  Tally heard;
  const std::string said = failure_of<RankFailed>(3, [&](World& world) {
    if (!world.shared_memory()) {
      heard.add();
      if (world.rank() != 1) return;
      throw Failure("gone");
    }
    const auto barrier = world.shared_memory()->barrier("b", world.rank(), world.size());
    if (world.rank() == 1) {
      heard.add();
      world.sleep(0.02);
      throw Failure("gone");
    }
    try {
      barrier->wait(forever);
    } catch (const PeerLost& lost) {
      if (lost.rank() == 1 && says(lost.operation(), "barrier `b`")) heard.add();
    }
  });
  EXPECT_EQ(said, "rank 1: gone");
  EXPECT_EQ(heard.count(), 3);
}

TEST_P(AllWorlds, MessagesAllocateNothingOnceWarm) {
  if (!allocations_are_counted() || !GetParam().real_time || GetParam().allocates) GTEST_SKIP();
  run(2, [](World& world) {
    const Rank other = 1 - world.rank();
    std::vector<std::uint64_t> large(30000), large_in(30000), small(10), small_in(10);
    const auto exchange = [&](std::uint32_t i) {
      Work a = world.send(other, 0, label(i), bytes_of(large)), b = world.send(other, 1, label(i), bytes_of(small));
      Work c = world.receive(other, 1, label(i), writable_bytes_of(small_in));
      Work d = world.receive(other, 0, label(i), writable_bytes_of(large_in));
      require(a.wait(forever) && b.wait(forever) && c.wait(forever) && d.wait(forever), "done");
    };
    // A pool grows whenever more messages are under way than ever before, which may happen late, but not every time.
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < 20; ++round) {
      const std::int64_t before = allocations();
      for (std::uint32_t i = 0; i < 100; ++i) exchange(i);
      fewest = std::min(fewest, allocations() - before);
    }
    require(fewest == 0, fmt::format("no allocations; there were {} in 400 messages", fewest));
    exchange(0);  // both have counted
  });
}

}  // namespace
}  // namespace echelon::test
