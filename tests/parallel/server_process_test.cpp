// Servers that are processes of their own: training goes on when they are killed, and nothing that was confirmed is
// lost.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/parallel/results.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

// The processes of that name that this one has started.
std::vector<int> own_processes(const std::string& name) {
  std::vector<int> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (int process = 0; children >> process;) {
      std::string comm;
      std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), comm);
      if (comm == name) found.push_back(process);
    }
  }
  return found;
}

// What the ranks of a world have found out, in memory that all of them see.
struct Found {
  Tally servers, same, lost, reached;
};

std::string chain(const std::string& more) {
  return gradients_to_servers("servers = 'all'\nreplicas = 2\nprocesses = true\n" + more, "bsp");
}

// Ranks that have processes beside them: of these `at` (rank, step) is killed from outside.
void train_and_kill(const WorldUnderTest& world, const std::string& system, std::pair<Rank, int> at,
                    const std::vector<float>& expected, Found& found) {
  constexpr int steps = 20;
  world.run(3, [&](World& w) {
    SystemJob job{.system = system, .steps = steps};
    job.schedule = [&, killed = false](std::int64_t step) mutable {
      const bool kills = w.rank() == at.first && step == at.second && !killed;
      std::vector<int> servers = own_processes("echelon-server");
      while (servers.empty() && at.first >= 0 && (step == 0 || kills)) {  // forked, and about to take its name
        w.sleep(0.001);
        servers = own_processes("echelon-server");
      }
      for (std::size_t i = 0; i < servers.size(); ++i)
        if (step == 0) found.servers.add();
      if (kills) {
        killed = true;
        for (const int process : servers) kill(process, SIGKILL);
      }
      return 0.05;
    };
    const SystemResult result = run_system(w, job);
    if (same_bits(result.model, expected)) found.same.add();
    if (result.reached == steps) found.reached.add();
    for (int i = 0; i < static_cast<int>(result.figures.at("servers_lost")); ++i)
      if (w.rank() == 0) found.lost.add();
  });
}

std::vector<WorldUnderTest> worlds_with_processes() {
  std::vector<WorldUnderTest> worlds;
  for (const WorldUnderTest& world : all_worlds())
    if (world.name == "processes" || world.name == "tcp") worlds.push_back(world);
  return worlds;
}

// In rounds a death changes nothing at all: the weights are those without one, bit for bit.
TEST(ServerProcess, TrainingGoesOnWhenOneIsKilled) {
  const auto whole =
      simulate_system(3, {.system = gradients_to_servers("servers = 'all'\nreplicas = 2\n", "bsp"), .steps = 20});
  for (const WorldUnderTest& world : worlds_with_processes())
    for (const auto& at : {std::pair<Rank, int>{0, 7}, {1, 0}, {2, 19}}) {
      SCOPED_TRACE(fmt::format("{}: rank {} in step {}", world.name, at.first, at.second));
      Found found;
      train_and_kill(world, chain(""), at, whole[0].model, found);
      EXPECT_EQ(found.servers.count(), 3) << "a process for each rank";
      EXPECT_EQ(found.lost.count(), 2) << "its own server and the replica of the one before it";
      EXPECT_EQ(found.same.count(), 3);
      EXPECT_EQ(found.reached.count(), 3);
    }
}

// The experiment kills the process too, and here at an update of the server.
TEST(ServerProcess, TheExperimentEndsARealProcess) {
  const auto whole =
      simulate_system(3, {.system = gradients_to_servers("servers = 'all'\nreplicas = 2\n", "bsp"), .steps = 20});
  for (const char* kill : {"1.0@5", "0.1@0", "2.0@19"}) {
    SCOPED_TRACE(kill);
    Found found;
    train_and_kill(worlds_with_processes().front(), chain(fmt::format("kill_server = '{}'\n", kill)), {-1, 0},
                   whole[0].model, found);
    EXPECT_EQ(found.lost.count(), 2);
    EXPECT_EQ(found.same.count(), 3);
  }
}

TEST(ServerProcess, WithoutADeathTheStateComesBack) {
  const auto whole =
      simulate_system(3, {.system = gradients_to_servers("servers = 'all'\nreplicas = 2\n", "bsp"), .steps = 20});
  Found found;
  train_and_kill(worlds_with_processes().front(), chain(""), {-1, 0}, whole[0].model, found);
  EXPECT_EQ(found.lost.count(), 0);
  EXPECT_EQ(found.same.count(), 3);
}

// Nobody waits for anybody: the others go on, and learn.
TEST(ServerProcess, WithoutRoundsTheOthersGoOn) {
  Tally good;
  for (const WorldUnderTest& world : worlds_with_processes())
    world.run(3, [&](World& w) {
      SystemJob job{.system = gradients_to_servers("servers = 'all'\nreplicas = 2\nprocesses = true\n", "async"),
                    .steps = 60};
      job.schedule = [&](std::int64_t step) {
        if (w.rank() == 1 && step > 10)
          for (const int process : own_processes("echelon-server")) kill(process, SIGKILL);
        return 0.05;
      };
      const SystemResult result = run_system(w, job);
      if (result.accuracy > 0.9 && result.figures.at("servers_lost") == 2) good.add();
    });
  EXPECT_EQ(good.count(), 6);
}

TEST(ServerProcess, NeedsAReplica) {
  Problems problems;
  composition_of(gradients_to_servers("processes = true", "bsp"), problems);
  EXPECT_NE(problems.text("system").find("set replicas to 2 or more"), std::string::npos);
}

}  // namespace
}  // namespace echelon
