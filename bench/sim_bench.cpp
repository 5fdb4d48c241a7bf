// The simulated world: real seconds for one all-reduce of 8 bytes over a binomial tree, as it is and with every message
// as frames on a bad wire. The promise: 10,000 ranks in at most 10 s.
//
//     bench_sim [RANKS]

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/world/sim_support.h"
#include "world/sim/simulation.h"

int main(int argc, char** argv) {
  using namespace echelon;
  using Clock = std::chrono::steady_clock;
  const int most = argc > 1 ? std::atoi(argv[1]) : 10'000;
  for (const bool bad_weather : {false, true})
    for (int ranks = 100; ranks <= most; ranks *= 10) {
      SimOptions options{.seed = 1};
      if (bad_weather) options.faults.drop = options.faults.corrupt = options.faults.duplicate = 0.02;
      const auto begin = Clock::now();
      const SimReport report =
          run_in_simulation(SimCluster::uniform(ranks, 5e-6, 1.25e9), options, [ranks](World& world) {
            if (test::tree_all_reduce(world, 1) != ranks) fail("a wrong sum");
          });
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      report.throw_if_failed();
      std::printf(
          "{\"bench\":\"sim\",\"ranks\":%d,\"faults\":%s,\"real_s\":%.3f,\"virtual_us\":%.1f,\"messages\":%llu,"
          "\"frames\":%llu,\"events\":%llu,\"trace\":\"%016llx\"}\n",
          ranks, bad_weather ? "true" : "false", seconds, report.seconds * 1e6,
          static_cast<unsigned long long>(report.messages), static_cast<unsigned long long>(report.frames),
          static_cast<unsigned long long>(report.events), static_cast<unsigned long long>(report.trace_hash));
    }
}
