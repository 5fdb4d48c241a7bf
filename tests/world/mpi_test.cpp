// The MPI world, under mpirun. Each test here starts this very program again on several ranks, which then run the test
// of the same name in the suite MpiRank; who has no mpirun skips them.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <numeric>

#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "tests/world/messages.h"
#include "world/mailbox/mailbox.h"
#include "world/os/command.h"
#include "world/os/host.h"
#include "world/transport/mpi/join.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

using test::forever;
using test::random_bytes;
using test::require;

CommandResult mpirun(int ranks, const std::string& test, bool share_memory = true) {
  const test::TempDir folder;  // two mpiruns that begin at once cannot both make the usual one
  Command c;
  c.argv = {"mpirun",
            "--mca",
            "orte_tmpdir_base",
            folder.path(),
            "--allow-run-as-root",
            "--oversubscribe",
            "-np",
            std::to_string(ranks),
            "-x",
            std::string("ECHELON_MPI_TEST=") + (share_memory ? "share" : "separate"),
            "-x",  // MPI's own libraries keep memory until the process ends
            "ASAN_OPTIONS=" + environment("ASAN_OPTIONS") + ":detect_leaks=0",
            program_directory() + "/test_world",
            "--gtest_color=no",
            "--gtest_filter=MpiRank." + test};
  c.limit_seconds = 120;
  return run_command(c);
}

bool have_mpi() {
  Command c;
  c.argv = {"mpirun", "--version"};
  try {
    return run_command(c).exit_code == 0;
  } catch (const Failure&) {
    return false;
  }
}

void join(const Program& program) {
  MpiOptions options;
  options.share_memory = environment("ECHELON_MPI_TEST") == "share";
  join_mpi({.seed = 7, .grace_seconds = 2}, program, options);
}

class Mpi : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!have_mpi()) GTEST_SKIP();
  }
};
INSTANTIATE_TEST_SUITE_P(Memory, Mpi, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "Separate"; });

class MpiRank : public testing::Test {
 protected:
  void SetUp() override {
    if (environment("ECHELON_MPI_TEST").empty()) GTEST_SKIP();
  }
};

TEST_F(MpiRank, MessagesOfAnySizeArriveWhole) {
  join([](World& w) {
    require(w.place().world == "mpi" && w.size() == 3 && w.place().seed == 7, "the place");
    require((w.shared_memory() != nullptr) == (environment("ECHELON_MPI_TEST") == "share"), "shared memory");
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{3} << 20}) {
      for (const bool to_sink : {false, true}) {
        std::vector<Work> works;
        std::vector<std::vector<std::byte>> out(3), in(3);
        for (int peer = 0; peer < 3; ++peer) {
          const auto p = static_cast<std::size_t>(peer);
          if (peer == w.rank()) continue;
          out[p] = random_bytes(bytes, 10 * w.rank() + peer);
          works.push_back(w.send(peer, 4, {OperationKind::plain, 0, 0, 1}, out[p]));
          if (to_sink) {
            works.push_back(w.receive(peer, 4, {OperationKind::plain, 0, 0, 1}, bytes,
                                      {&in[p], [](void* self, std::size_t, std::span<const std::byte> piece) {
                                         auto& v = *static_cast<std::vector<std::byte>*>(self);
                                         v.insert(v.end(), piece.begin(), piece.end());
                                       }}));
          } else {
            in[p].resize(bytes);
            works.push_back(w.receive(peer, 4, {OperationKind::plain, 0, 0, 1}, in[p]));
          }
        }
        for (auto& work : works) require(work.wait(forever), "in time");
        for (int peer = 0; peer < 3; ++peer) {
          if (peer != w.rank())
            require(in[static_cast<std::size_t>(peer)] == random_bytes(bytes, 10 * peer + w.rank()), "bytes");
        }
      }
    }
  });
}
TEST_P(Mpi, MessagesOfAnySizeArriveWhole) {
  const auto r = mpirun(3, "MessagesOfAnySizeArriveWhole", GetParam());
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_TRUE(test::says(r.output, "[  PASSED  ] 1 test"));
}

TEST_F(MpiRank, MessagesArriveWithAndWithoutASlowLink) {
  join([](World& inner) {
    for (const LinkLimit& limit_of_link : {LinkLimit{}, LinkLimit{20e6, 1e-3}}) {
      const auto w = make_metered(inner, limit_of_link);
      Mailbox mailbox(*w, 100'000);
      const double begin = w->now();
      for (Rank to = 0; to < 3; ++to)
        for (int i = 0; i < 5; ++i)
          mailbox.post(to, {.clock = i}, random_bytes(i % 2 == 0 ? 100'000 : 500, i + w->rank()));
      std::vector<int> next(3);
      Message message;
      for (int i = 0; i < 15; ++i) {
        require(mailbox.take(0, message, forever), "in time");
        const int expected = next[static_cast<std::size_t>(message.from)]++;
        require(message.head.clock == expected, "in order");
        const auto sent = random_bytes(expected % 2 == 0 ? 100'000 : 500, expected + message.from);
        require(std::ranges::equal(message.payload(), sent), "bytes");
      }
      if (limit_of_link.bytes_per_second > 0) require(w->now() - begin > 0.03, "not faster than the link");
      mailbox.close();
    }
  });
}
TEST_P(Mpi, MessagesArriveWithAndWithoutASlowLink) {
  const auto r = mpirun(3, "MessagesArriveWithAndWithoutASlowLink", GetParam());
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_TRUE(test::says(r.output, "[  PASSED  ] 1 test"));
}

TEST_F(MpiRank, ItsOwnAllReduceSums) {
  join([](World& w) {
    std::vector<float> f(1000);
    std::iota(f.begin(), f.end(), static_cast<float>(w.rank()));
    require(w.native_all_reduce(f.data(), f.size(), 1, 0), "float32");
    for (std::size_t i = 0; i < f.size(); ++i) require(f[i] == 4 * static_cast<float>(i) + 6, "the sum");
    std::vector<std::int64_t> n = {w.rank(), -w.rank()};
    require(w.native_all_reduce(n.data(), n.size(), 4, 2), "int64");
    require(n[0] == 3 && n[1] == 0, "the maximum");
    require(!w.native_all_reduce(n.data(), 1, 0, 0), "bytes have no sum");
  });
}
TEST_P(Mpi, ItsOwnAllReduceSums) {
  const auto r = mpirun(4, "ItsOwnAllReduceSums", GetParam());
  EXPECT_EQ(r.exit_code, 0) << r.output;
}

TEST_F(MpiRank, ARankThatThrowsIsNamedOnAll) {
  try {
    join([](World& w) {
      if (w.rank() == 1) throw Failure("out of luck");
      int x = 0;
      try {
        w.receive(1 - w.rank() / 2, 3, {OperationKind::all_reduce, 1, 0, 7}, std::as_writable_bytes(std::span(&x, 1)))
            .wait(forever);
      } catch (const PeerLost& e) {
        std::printf("rank %d heard: %s\n", w.rank(), e.what());
        throw;
      }
    });
  } catch (const RankFailed& e) {
    std::printf("in the end: %s\n", e.what());
  }
  std::fflush(nullptr);
}
TEST_P(Mpi, ARankThatThrowsIsNamedOnAll) {
  const auto r = mpirun(3, "ARankThatThrowsIsNamedOnAll", GetParam());
  EXPECT_TRUE(test::says(r.output, "rank 0 heard: rank 1 was lost (out of luck) during all-reduce 7"));
  EXPECT_TRUE(test::says(r.output, "rank 2 heard: rank 1 was lost (out of luck) during all-reduce 7"));
  EXPECT_TRUE(test::says(r.output, "in the end: rank 1: out of luck"));
}

TEST_F(MpiRank, WhoNeverWaitsIsEndedWithTheJob) {
  join([](World& w) {
    if (w.rank() == 1) throw Failure("out of luck");
    w.sleep(600);
  });
}
TEST_P(Mpi, WhoNeverWaitsIsEndedWithTheJob) {
  const auto r = mpirun(2, "WhoNeverWaitsIsEndedWithTheJob", GetParam());
  EXPECT_NE(r.exit_code, 0);
  EXPECT_TRUE(test::says(r.output, "rank 1: out of luck"));
}

TEST_F(MpiRank, AKilledRankEndsTheJob) {
  join([](World& w) {
    if (w.rank() == 1) ::raise(SIGKILL);
    int x = 0;
    w.receive(1, 3, {}, std::as_writable_bytes(std::span(&x, 1))).wait(w.now() + 600);
  });
}
TEST_P(Mpi, AKilledRankEndsTheJob) {
  const auto r = mpirun(3, "AKilledRankEndsTheJob", GetParam());
  EXPECT_NE(r.exit_code, 0);
  EXPECT_TRUE(test::says(r.output, "process rank 1"));  // mpirun's own words: it ends the others before we can speak
}

TEST(MpiPlugin, ItsAbsenceIsExplained) {
  ::setenv("ECHELON_MPI_PLUGIN", "/nowhere/libechelon_mpi.so", 1);
  const std::string said = test::complaint_of([] { join_mpi({}, [](World&) {}); });
  ::unsetenv("ECHELON_MPI_PLUGIN");
  EXPECT_TRUE(test::says(said, "/nowhere/libechelon_mpi.so"));
  EXPECT_TRUE(test::says(said, "libopenmpi-dev"));
}

}  // namespace
}  // namespace echelon
