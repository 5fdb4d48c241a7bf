#include "world/os/kept_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace echelon {
namespace {

// State number n: every number of it is n.
struct NumberedState {
  std::vector<std::int64_t> a = std::vector<std::int64_t>(1000), b = std::vector<std::int64_t>(37);
  std::vector<StateSpan> tensors() { return {as_state("a", a), as_state("b", b)}; }
  void fill(std::int64_t n) { std::ranges::fill(a, n), std::ranges::fill(b, n); }
};

void expect_untorn(const KeptState& kept) {
  if (!kept.has_state()) return;
  NumberedState found;
  std::string memory;
  const KeptState::Position position = kept.read_position(memory);
  kept.read(found.tensors());
  EXPECT_EQ(memory, std::to_string(position.step));
  EXPECT_TRUE(std::ranges::all_of(found.a, [&](std::int64_t x) { return x == position.step; }));
  EXPECT_TRUE(std::ranges::all_of(found.b, [&](std::int64_t x) { return x == position.step; }));
}

void write_numbered(KeptState& kept, int part, std::int64_t n) {
  NumberedState state;
  state.fill(n);
  kept.write(part, {.step = n}, std::to_string(n), state.tensors());
}

TEST(KeptState, HoldsTheNewestStateThatAllPartsAreOf) {
  KeptState kept(1 << 20);
  kept.begin(1);
  EXPECT_FALSE(kept.has_state());
  for (std::int64_t n = 1; n <= 5; ++n) {
    write_numbered(kept, 0, n);
    EXPECT_EQ(kept.step(), n);
    expect_untorn(kept);
  }
  kept.begin(3);  // other ranks go on; one part alone makes no state
  EXPECT_EQ(kept.step(), 5);
  write_numbered(kept, 0, 6);
  EXPECT_EQ(kept.step(), 5);
  expect_untorn(kept);
}

// Each writer is a process that keeps going until it is killed; whatever the moment, what is left is one state.
TEST(KeptState, IsWholeAtWhateverInstructionAWriterIsKilled) {
  KeptState kept(1 << 20);
  std::int64_t last = 0;
  const Stream stream({.seed = 7});
  for (std::uint32_t round = 0; round < 40; ++round) {
    kept.begin(1);
    const pid_t child = ::fork();
    if (child == 0)
      for (std::int64_t n = last + 1;; ++n) write_numbered(kept, 0, n);
    usleep(stream.below(3000, round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_GE(kept.step(), last);
    last = kept.step();
    expect_untorn(kept);
  }
  EXPECT_GT(last, 0);
}

// Ranks of which some are far behind, in any order: the newest whole state is never written over, nor does it age.
TEST(KeptState, IsNeverWrittenOverByARankThatIsAhead) {
  constexpr int parts = 3;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    KeptState shared(1 << 20);
    shared.begin(parts);
    int pipes[parts][2], answers[parts][2];
    std::vector<pid_t> ranks;
    for (int p = 0; p < parts; ++p) {  // each rank counts its own states, so each is a process
      ASSERT_EQ(pipe(pipes[p]), 0);
      ASSERT_EQ(pipe(answers[p]), 0);
      ranks.push_back(fork());
      if (ranks.back() == 0) {
        char word = 0;
        for (std::int64_t n = 1; ::read(pipes[p][0], &word, 1) == 1 && word == 'w'; ++n) {
          write_numbered(shared, p, n);
          if (::write(answers[p][1], &word, 1) != 1) break;
        }
        _exit(0);
      }
    }
    const Stream stream({.seed = seed});
    std::int64_t before = 0;
    char word = 'w';
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint32_t p = stream.below(parts, i);
      ASSERT_EQ(::write(pipes[p][1], &word, 1), 1);
      ASSERT_EQ(::read(answers[p][0], &word, 1), 1);
      expect_untorn(shared);
      EXPECT_GE(shared.step(), before);
      before = shared.step();
    }
    word = 'e';
    for (int p = 0; p < parts; ++p) {
      EXPECT_EQ(::write(pipes[p][1], &word, 1), 1);
      waitpid(ranks[static_cast<std::size_t>(p)], nullptr, 0);
      for (const int end : {pipes[p][0], pipes[p][1], answers[p][0], answers[p][1]}) close(end);
    }
  }
}

TEST(KeptState, RefusesPlacesOfOtherSizesAndWhatDoesNotFit) {
  KeptState kept(1 << 12);
  kept.begin(1);
  std::string memory;
  EXPECT_THROW(kept.read_position(memory), Failure);
  std::vector<char> small(100), other(99), large(1 << 13);
  kept.write(0, {.step = 1}, "", std::vector{as_state("x", small)});
  EXPECT_THROW(kept.read(std::vector{as_state("x", other)}), Failure);
  EXPECT_THROW(kept.write(0, {.step = 2}, "", std::vector{as_state("x", large)}), Failure);
  EXPECT_EQ(kept.step(), 1);
}

TEST(KeptState, RemembersFolderAndWishForTheLauncher) {
  KeptState kept(1 << 12);
  EXPECT_EQ(kept.folder(), "");
  const pid_t child = ::fork();
  if (child == 0) kept.set_folder("runs/a"), kept.ask_for_workers(3), _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(kept.folder(), "runs/a");
  EXPECT_EQ(kept.take_asked_workers(), 3);
  EXPECT_EQ(kept.take_asked_workers(), 0);
}

}  // namespace
}  // namespace echelon
