#pragma once
// Every world on which the suite of tests/world/world_suite_test.cpp runs. A new world adds one line to the table.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "tests/world/messages.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/transport/tcp/join.h"

namespace echelon::test {

struct WorldUnderTest {
  std::string name;
  std::function<void(int ranks, const Program& program)> run;  // as in world/launch.h
  bool own_memory = false;  // ranks see nothing of each other's memory, and one can be killed
  bool real_time = true;    // its clock is the machine's
  bool allocates = false;   // a library of others does so for each message
};

inline void PrintTo(const WorldUnderTest& world, std::ostream* out) { *out << world.name; }

// All ranks on this machine. On a busy one a rank may be silent for seconds, and is not lost for that.
inline TcpOptions tcp_options(int ranks) {
  TcpOptions options;
  options.per_node = ranks;
  options.silence_seconds = 1e6;
  return options;
}

inline const std::vector<WorldUnderTest>& all_worlds() {
  static const std::vector<WorldUnderTest> worlds{
      {"threads", [](int ranks, const Program& program) { run_in_threads(ranks, {.seed = 7}, program); }},
      {"processes", [](int ranks, const Program& program) { run_in_processes(ranks, {.seed = 7}, program); }, true},
      {"sim",
       [](int ranks, const Program& program) {
         run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {.seed = 7}, program).throw_if_failed();
       },
       false, false},
      {"sim_in_bad_weather",  // the same through frames, of which many are lost, late, doubled or corrupt
       [](int ranks, const Program& program) {
         SimOptions options{.seed = 7};
         options.faults.drop = options.faults.duplicate = options.faults.corrupt = options.faults.stale = 0.05;
         options.faults.reorder = options.faults.delay = 0.1;
         run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), options, program).throw_if_failed();
       },
       false, false},
      {"tcp", [](int ranks, const Program& program) { run_on_tcp(tcp_options(ranks), {.seed = 7}, program); }, true},
      {"tcp_sockets",
       [](int ranks, const Program& program) {
         TcpOptions options = tcp_options(ranks);
         options.share_memory = false;
         run_on_tcp(options, {.seed = 7}, program);
       },
       true},
      {"tcp_with_tls",
       [](int ranks, const Program& program) {
         TcpOptions options = tcp_options(ranks);
         options.share_memory = false;
         options.tls = true;
         run_on_tcp(options, {.seed = 7}, program);
       },
       true, true, true},
  };
  return worlds;
}

// A number that all ranks of a world started by this process can see, whatever the world: for what they find out after
// the failure that the launcher reports.
class Tally {
 public:
  Tally()
      : count_(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   std::atomic<int>{0}) {}
  ~Tally() { munmap(count_, 4096); }
  Tally(const Tally&) = delete;
  void add() { count_->fetch_add(1); }
  int count() const { return count_->load(); }

 private:
  std::atomic<int>* count_;
};

class OnEveryWorld : public testing::TestWithParam<WorldUnderTest> {
 protected:
  void run(int ranks, const Program& program) { GetParam().run(ranks, program); }
  // The text of the failure with which the launcher ends; the test fails if there is none.
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

}  // namespace echelon::test
