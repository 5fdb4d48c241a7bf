// How the ranks of the TCP world come together, and what they say when one goes.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "tests/world/messages.h"
#include "tests/world/tcp_threads.h"
#include "world/transport/tcp/join.h"

namespace echelon {
namespace {

std::uint16_t free_port() {
  std::uint16_t port = 0;
  ::close(test::listen_on_loopback(port));
  return port;
}

// Everybody tells everybody its number.
void exchange(World& w) {
  std::vector<int> got(static_cast<std::size_t>(w.size()), -1);
  const int mine = w.rank();
  std::vector<Work> works;
  for (int peer = 0; peer < w.size(); ++peer) {
    if (peer == w.rank()) continue;
    works.push_back(w.receive(peer, 0, {}, std::as_writable_bytes(std::span(&got[static_cast<std::size_t>(peer)], 1))));
    works.push_back(w.send(peer, 0, {}, std::as_bytes(std::span(&mine, 1))));
  }
  for (auto& work : works) {
    if (!work.wait(test::forever)) fail("too late");
  }
  for (int peer = 0; peer < w.size(); ++peer) {
    if (peer != w.rank() && got[static_cast<std::size_t>(peer)] != peer) fail("not what rank {} has sent", peer);
  }
}

TEST(TcpJoin, OneMachineNeedsNobodyAndNoSecret) {
  TcpOptions options;
  options.per_node = 3;
  run_on_tcp(options, {}, [](World& w) {
    if (w.size() != 3 || w.place().world != "tcp") fail("not the world that was asked for");
    const RankEnvironment e = read_rank_environment();
    if (e.rank != w.rank() || e.size != 3 || e.local_rank != w.rank() || e.local_size != 3) fail("environment");
    exchange(w);
  });
}

TcpOptions meeting(std::uint16_t port, const std::string& secret_file) {
  TcpOptions options;
  options.endpoint = "127.0.0.1:" + std::to_string(port);
  options.secret_file = secret_file;
  options.join_seconds = 600;
  return options;
}

// A launcher in a process of its own, as on another machine.
class Node {
 public:
  Node(const TcpOptions& options, const Program& program) {
    int ends[2];
    if (::pipe(ends) != 0) fail("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      std::string text = "fine";
      try {
        run_on_tcp(options, {}, program);
      } catch (const std::exception& e) {
        text = e.what();
      }
      [[maybe_unused]] const auto n = ::write(ends[1], text.data(), text.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    end_ = ends[0];
  }
  // Waits for its end.
  std::string says() {
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = ::read(end_, buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
    return said;
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

// What the launchers say.
std::vector<std::string> run_nodes(const std::vector<TcpOptions>& options, const Program& program) {
  std::vector<Node> nodes;
  for (const TcpOptions& o : options) nodes.emplace_back(o, program);
  std::vector<std::string> said;
  for (Node& node : nodes) said.push_back(node.says());
  return said;
}

TEST(TcpJoin, NodesMeetAtOneAddress) {
  const test::TempDir dir;
  const std::string secret = dir.path() + "/secret";
  make_job_secret_file(secret);
  for (const bool tls : {false, true}) {
    const std::uint16_t port = free_port();
    std::vector<TcpOptions> nodes(3, meeting(port, secret));
    for (auto& n : nodes) {
      n.min_nodes = n.max_nodes = 3;
      n.per_node = 2;
      n.tls = tls;
    }
    for (const auto& text : run_nodes(nodes, [](World& w) {
           if (w.size() != 6) fail("{} ranks", w.size());
           exchange(w);
         })) {
      EXPECT_EQ(text, "fine");
    }
  }
}

TEST(TcpJoin, FewerNodesThanTheMostBeginAfterTheLastCall) {
  const test::TempDir dir;
  const std::string secret = dir.path() + "/secret";
  make_job_secret_file(secret);
  std::vector<TcpOptions> nodes(2, meeting(free_port(), secret));
  for (auto& n : nodes) {
    n.min_nodes = 2;
    n.max_nodes = 5;
    n.last_call_seconds = 0.3;
  }
  for (const auto& text : run_nodes(nodes, [](World& w) {
         if (w.size() != 2) fail("{} ranks", w.size());
         exchange(w);
       })) {
    EXPECT_EQ(text, "fine");
  }
}

// While a job lives, its rendezvous is held: a node that comes too late does not begin a second job of that name.
TEST(TcpJoin, ANodeThatComesTooLateIsRefusedByName) {
  const test::TempDir dir;
  const std::string secret = dir.path() + "/secret";
  make_job_secret_file(secret);
  TcpOptions options = meeting(free_port(), secret);
  options.min_nodes = 1;
  options.max_nodes = 2;
  options.last_call_seconds = 0;
  options.job_id = "held";
  const auto said = run_nodes({options}, [&](World& w) {
    if (w.size() != 1) fail("{} ranks", w.size());
    const std::string late = test::complaint_of([&] { run_on_tcp(options, {}, [](World&) { ::_exit(9); }); });
    if (late.find("the job 'held' at 127.0.0.1") == std::string::npos || late.find("too late") == std::string::npos)
      fail("the late one heard: {}", late);
  });
  EXPECT_EQ(said[0], "fine");
}

int listening_sockets_of(pid_t process) {
  std::set<std::string> listening;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() > 9 && fields[3] == "0A") listening.insert("socket:[" + fields[9] + "]");
  }
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process))) {
    std::error_code gone;
    count += listening.contains(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  return count;
}

// Neither a rank nor the launcher, which has made the ranks' sockets, listens any more.
TEST(TcpJoin, OnceAllAreConnectedNobodyListens) {
  TcpOptions options;
  options.per_node = 3;
  run_on_tcp(options, {}, [](World& w) {
    exchange(w);
    for (const pid_t process : {::getpid(), ::getppid()}) {
      const double end = w.now() + 60;  // the launcher closes its copies when it gets to run
      while (listening_sockets_of(process) > 0 && w.now() < end) w.sleep(0.01);
      if (const int open = listening_sockets_of(process)) fail("process {} listens at {} ports", process, open);
    }
    exchange(w);
  });
}

TEST(TcpJoin, PlacesThatWereAskedForAreGiven) {
  const test::TempDir dir;
  const std::string secret = dir.path() + "/secret";
  make_job_secret_file(secret);
  std::vector<TcpOptions> nodes(2, meeting(free_port(), secret));
  for (int i = 0; i < 2; ++i) {
    nodes[static_cast<std::size_t>(i)].min_nodes = nodes[static_cast<std::size_t>(i)].max_nodes = 2;
    nodes[static_cast<std::size_t>(i)].node_rank = i;
    nodes[static_cast<std::size_t>(i)].per_node = 1 + i;
  }
  for (const auto& text : run_nodes(nodes, [](World& w) {
         if (w.size() != 3) fail("{} ranks", w.size());
         const RankEnvironment e = read_rank_environment();
         if (e.local_size != (w.rank() == 0 ? 1 : 2)) fail("rank {} is on the wrong node", w.rank());
         exchange(w);
       })) {
    EXPECT_EQ(text, "fine");
  }
}

// As torchrun or srun would start them: each process is a rank, and finds its neighbours' memory by itself.
TEST(TcpJoin, ProcessesThatOthersHaveStartedBecomeTheRanksOfTheirEnvironment) {
  const test::TempDir dir;
  make_job_secret_file(dir.path() + "/secret");
  TcpOptions options;
  options.secret_file = dir.path() + "/secret";
  const std::uint16_t port = free_port();
  std::vector<pid_t> started;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      RankEnvironment place{"torchrun", rank, 3, rank, 3, "127.0.0.1", port};
      try {
        join_tcp(options, place, {}, [&](World& w) {
          if (w.rank() != rank || w.size() != 3) fail("another place");
          if (!w.shared_memory()) fail("no shared memory");
          exchange(w);
        });
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    started.push_back(pid);
  }
  for (const pid_t pid : started) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(TcpJoin, WhoDoesNotBelongIsToldWhy) {
  const test::TempDir dir;
  const std::string secret = dir.path() + "/secret", other = dir.path() + "/other";
  make_job_secret_file(secret);
  make_job_secret_file(other);
  TcpOptions first = meeting(free_port(), secret);
  first.min_nodes = first.max_nodes = 2;
  first.node_rank = 0;
  TcpOptions second = first;
  second.node_rank = 1;
  Node rendezvous(first, exchange);
  const auto refused = [&](const std::function<void(TcpOptions&)>& change) {
    TcpOptions options = second;
    change(options);
    return Node(options, exchange).says();
  };
  EXPECT_TRUE(test::says(refused([&](TcpOptions& o) { o.secret_file = other; }), "it does not have the same secret"));
  EXPECT_TRUE(test::says(refused([](TcpOptions& o) { o.job_id = "another"; }), "another job is there"));
  EXPECT_TRUE(test::says(refused([](TcpOptions& o) { o.max_nodes = 3; }),
                         "this node was told 2:3 nodes, the one at the rendezvous 2:2"));
  Node belongs(second, exchange);  // makes the job complete
  EXPECT_EQ(rendezvous.says(), "fine");
  EXPECT_EQ(belongs.says(), "fine");
}

TEST(TcpJoin, WhatCannotWorkIsRefusedBeforeAnythingHappens) {
  const auto complaint = [](const TcpOptions& options) {
    return test::complaint_of([&] { run_on_tcp(options, {}, [](World&) { ::_exit(9); }); });
  };
  TcpOptions options;
  options.min_nodes = options.max_nodes = 2;
  EXPECT_TRUE(test::says(complaint(options), "need a common secret"));
  options.endpoint = "10.1.2.3:29400";
  EXPECT_TRUE(test::says(complaint(options), "where no other machine can reach them"));
  options.endpoint = "nowhere";
  EXPECT_TRUE(test::says(complaint(options), "host:port"));
  options = {};
  options.bind = "everywhere";
  EXPECT_TRUE(test::says(complaint(options), "no address"));
  options.bind = "0.0.0.0";
  EXPECT_TRUE(test::says(complaint(options), "need a common secret"));
  options.bind = "192.0.2.1";
  options.secret_file = "/dev/null";
  EXPECT_TRUE(test::says(complaint(options), "/dev/null is no regular file"));
}

TEST(TcpJoin, TooFewNodesIsSaidAtTheEndOfTheWait) {
  const test::TempDir dir;
  make_job_secret_file(dir.path() + "/secret");
  TcpOptions options = meeting(free_port(), dir.path() + "/secret");
  options.min_nodes = options.max_nodes = 2;
  options.join_seconds = 0.2;
  options.last_call_seconds = 0;
  const auto said = run_nodes({options}, exchange);
  EXPECT_TRUE(test::says(said[0], "for 2 nodes; 1 came"));
}

// A rank that is killed has a name on all others, soon.
class TcpLoss : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, TcpLoss, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "Separate"; });

TEST_P(TcpLoss, AKilledRankIsNamedOnEverySurvivor) {
  TcpOptions options;
  options.per_node = 4;
  options.share_memory = GetParam();
  const test::TempDir dir;
  std::string what;
  try {
    run_on_tcp(options, {}, [&](World& w) {
      exchange(w);
      int x = 0;
      const auto word = std::as_writable_bytes(std::span(&x, 1));
      if (w.rank() != 2) try {
          w.send(2, 8, {}, word).wait(test::forever);
        } catch (const PeerLost&) {  // rank 2 has the message and has ended before the send has
        }
      if (w.rank() == 2) {  // when all others have begun to wait, or are about to
        for (const int peer : {0, 1, 3}) w.receive(peer, 8, {}, word).wait(test::forever);
        ::raise(SIGKILL);
      }
      try {
        w.receive(w.rank() == 0 ? 1 : 0, 9, {OperationKind::all_reduce, 1, 0, 7},
                  std::as_writable_bytes(std::span(&x, 1)))
            .wait(test::forever);
      } catch (const PeerLost& e) {
        const bool good = e.rank() == 2 && std::string(e.what()).find("during all-reduce 7") != std::string::npos;
        make_real_disk()->create(dir.path() + "/" + std::to_string(w.rank()) + (good ? ".good" : ".bad"));
        throw;
      }
    });
  } catch (const RankFailed& e) {
    what = e.what();
    EXPECT_EQ(e.rank(), 2);
  }
  EXPECT_TRUE(test::says(what, "rank 2: killed by signal 9"));
  EXPECT_EQ(make_real_disk()->list(dir.path()), (std::vector<std::string>{"0.good", "1.good", "3.good"}));
}

}  // namespace
}  // namespace echelon
