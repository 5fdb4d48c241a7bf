// What only ranks that are processes promise: how they end, whatever happens to them or to their parent, and that they
// leave nothing behind.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/says.h"
#include "tests/world/all_worlds.h"
#include "world/os/signals.h"
#include "world/transport/memory/segment.h"

namespace echelon::test {
namespace {

std::string failure_of(int ranks, const LaunchOptions& options, const Program& program) {
  try {
    run_in_processes(ranks, options, program);
  } catch (const RankFailed& failed) {
    return failed.what();
  }
  return "nothing";
}

void wait_for_nothing(World& world) {
  std::byte byte{};
  world.receive(world.rank(), 0, {}, std::span(&byte, 1)).wait(forever);
}

// Neither gone nor waiting to be buried by whoever has adopted it.
bool alive(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string facts{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = facts.rfind(") ");
  return name_end != std::string::npos && facts[name_end + 2] != 'Z' && facts[name_end + 2] != 'X';
}

TEST(Processes, AKilledRankIsNamedWithTheSignal) {
  EXPECT_EQ(failure_of(3, {},
                       [](World& world) {
                         if (world.rank() == 1) kill(getpid(), SIGKILL);
                         wait_for_nothing(world);
                       }),
            "rank 1: killed by signal 9");
  EXPECT_EQ(failure_of(3, {},
                       [](World& world) {
                         if (world.rank() == 2) _exit(7);
                         wait_for_nothing(world);
                       }),
            "rank 2: exited with code 7 before its program's end");
}

TEST(Processes, SurvivorsThatAreFastAsleepHearOfAKill) {
  Tally heard;
  failure_of(4, {}, [&](World& world) {
    const auto barrier = world.shared_memory()->barrier("b", world.rank(), world.size());
    barrier->wait(forever);
    if (world.rank() == 3) {
      world.sleep(0.3);  // long enough for the others to be fast asleep
      kill(getpid(), SIGKILL);
    }
    try {
      if (world.rank() == 0)
        barrier->wait(forever);
      else
        wait_for_nothing(world);
    } catch (const PeerLost&) {
      heard.add();
    }
  });
  EXPECT_EQ(heard.count(), 3);
}

TEST(Processes, ARankThatDoesNotEndAfterAFailureIsKilled) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of(2, {.grace_seconds = 0.1},
                       [](World& world) {
                         if (world.rank() == 0) fail("over");
                         for (;;) world.sleep(1);
                       }),
            "rank 0: over");
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(100));
}

TEST(Processes, NothingOfTheParentIsDoneTwice) {
  // A child that ran the parent's exit handlers, or wrote its buffered output, would show up here.
  struct Witness {
    Tally& tally;
    ~Witness() { tally.add(); }
  };
  Tally ends;
  {
    const Witness witness{ends};
    run_in_processes(3, {}, [](World&) {});
  }
  EXPECT_EQ(ends.count(), 1);
}

TEST(Processes, NothingStaysInSharedMemoryOrAmongTheDescriptors) {
  const auto open_descriptors = [] {
    const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const auto open = open_descriptors();
  // Other programs may use /dev/shm meanwhile, so look at what a rank has mapped: nothing that has a name there.
  run_in_processes(3, {}, [](World& world) {
    world.shared_memory()->get("some", 1 << 20)[0] = std::byte{1};
    std::ifstream file("/proc/self/maps");
    const std::string maps{std::istreambuf_iterator<char>(file), {}};
    require(maps.find("/memfd:echelon (deleted)") != std::string::npos, "shared memory without a name");
    require(maps.find("/dev/shm/") == std::string::npos, "nothing in /dev/shm");
  });
  failure_of(3, {}, [](World& world) {
    if (world.rank() == 1) kill(getpid(), SIGKILL);
    wait_for_nothing(world);
  });
  EXPECT_EQ(open_descriptors(), open);
}

TEST(Processes, NoRankOutlivesAParentThatWasKilled) {
  constexpr int ranks = 3;
  auto* pids =
      static_cast<std::atomic<pid_t>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t launcher = fork();
  if (launcher == 0) {
    run_in_processes(ranks, {}, [&](World& world) {
      pids[world.rank()] = getpid();
      if (world.rank() == 0) wait_for_nothing(world);
      for (;;) world.sleep(10);
    });
    _exit(0);
  }
  for (int r = 0; r < ranks; ++r)
    while (pids[r] == 0) usleep(1000);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  // They are nobody's children of ours: all we can do is look until they are gone.
  for (int r = 0; r < ranks; ++r)
    while (alive(pids[r])) usleep(1000);
  munmap(pids, 4096);
}

TEST(Processes, SignalsArePassedOnAndNoLongerBlocked) {
  Tally started;
  const pid_t launcher = fork();
  if (launcher == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    try {
      run_in_processes(3, {}, [&](World& world) {
        const StopSignals stop;
        started.add();
        while (!stop.flag()) world.sleep(0.001);
        require(stop.name() == "SIGTERM", "the signal itself");
      });
      sigset_t now;
      sigprocmask(SIG_SETMASK, nullptr, &now);
      _exit(sigismember(&now, SIGTERM) ? 2 : 0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  while (started.count() < 3) usleep(1000);
  kill(launcher, SIGTERM);
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// In the middle of connecting there is nobody yet who could hear a wish to stop.
TEST(Processes, ASignalThatComesBeforeAProgramListensIsKeptForIt) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    try {
      run_in_processes(3, {.hears_signals = true}, [](World& world) {
        if (world.rank() == 0) kill(getppid(), SIGINT);
        for (sigset_t waiting; sigpending(&waiting), !sigismember(&waiting, SIGINT);) world.sleep(0.001);
        const StopSignals stop;
        require(stop.flag() && stop.name() == "SIGINT", "what came before");
      });
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Processes, TheirSharedMemoryIsSparse) {
  run_in_processes(2, {.shared_bytes = std::size_t{1} << 40}, [](World& world) {
    const auto memory = world.shared_memory()->get("huge", std::size_t{1} << 39);
    if (world.rank() == 1) memory.back() = std::byte{1};
  });
  EXPECT_TRUE(says(
      failure_of(1, {.shared_bytes = 1 << 20}, [](World& world) { world.shared_memory()->get("too much", 1 << 22); }),
      "shared memory is full"));
}

TEST(Segment, AnotherProcessCanAttachToIt) {
  const auto segment = Segment::create(Segment::Reach::machine, 2, 1 << 20);
  const auto ours = segment->region("words", 100);
  ours[7] = std::byte{42};
  const std::string path = segment->path();
  const pid_t other = fork();
  if (other == 0) {
    const auto attached = Segment::attach(path);  // at another address: the inherited mapping is still there
    const auto theirs = attached->region("words", 100);
    const bool same = theirs.data() != ours.data() && theirs[7] == std::byte{42} && attached->ranks() == 2 &&
                      attached->offset_of(theirs.data()) == segment->offset_of(ours.data());
    theirs[8] = std::byte{43};
    attached->rank(1).status.write({.activity = "attached", .waiting_for = 0});
    _exit(same ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ours[8], std::byte{43});
  EXPECT_EQ(segment->rank(1).status.read(), (RankStatus{.activity = "attached", .waiting_for = 0}));
}

TEST(Segment, RefusesWhatIsNone) {
  EXPECT_THROW(Segment::attach("/proc/self/fd/4000"), Failure);
  EXPECT_TRUE(says(complaint_of([] { Segment::attach("/dev/null"); }), "/dev/null is no shared memory"));
}

TEST(FirstFailure, OnlyTheFirstCounts) {
  FirstFailure failure;
  EXPECT_FALSE(failure.known());
  failure.throw_to_launcher();
  EXPECT_TRUE(failure.set(3, "first"));
  EXPECT_FALSE(failure.set(1, "second", FailureKind::bad_input));
  EXPECT_FALSE(failure.set(3, "killed afterwards", FailureKind::failure, true));
  EXPECT_EQ(failure.rank(), 3);
  EXPECT_EQ(failure.reason(), "first");
  EXPECT_THROW(failure.throw_to_launcher(), RankFailed);
  EXPECT_TRUE(FirstFailure().set(0, std::string(10000, 'x')));
}

}  // namespace
}  // namespace echelon::test
