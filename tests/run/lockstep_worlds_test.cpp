// Systems whose workers keep step (sync bsp) make no choice that depends on who comes first: the same weights, loss and
// accuracy, bit for bit, as threads, as ranks of one simulated machine, and as ranks of one machine each.

#include <gtest/gtest.h>

#include <map>

#include "recipe/prepare.h"
#include "run/job.h"
#include "tests/run/shipped.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

using namespace test;

constexpr int lockstep_workers = 4;

// They measure, and go by what they find.
const std::map<std::string, const char*> measures{{"auto", "it takes the codec that is quickest on these links"},
                                                  {"crossbow", "it adds learners as long as they pay"}};
// Their sums have a level for each machine.
bool looks_at_machines(const std::string& system) { return system == "hierarchical" || system == "mxnet_kvstore"; }

struct WorldOutcome {
  std::string weights;
  double train_loss = 0, test_loss = 0, accuracy = 0;
  bool operator==(const WorldOutcome&) const = default;
};
void PrintTo(const WorldOutcome& o, std::ostream* out) {
  *out << o.weights.substr(0, 12) << ", losses " << o.train_loss << " and " << o.test_loss << ", accuracy "
       << o.accuracy;
}

class LockstepSystem : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    write_file_atomically(*disk_, recipe_,
                          "[model]\nname = 'mlp'\nhidden = [16, 16]\n[data]\nkind = 'digits'\nlimit = 256\n"
                          "limit_test = 100\ntransform = [{ kind = 'normalise', mean = 0.1307, std = 0.3081 }]\n"
                          "[optim]\nname = 'momentum'\nlr = 0.02\n[train]\nepochs = 5\nbatch = 64\n");
    Problems problems;
    prepared_.emplace(prepare_run(*disk_, recipe_, {}, problems, {.root = "nowhere", .share = {source_path("share")}},
                                  shipped[0] + "/" + GetParam() + ".toml"));
    problems.throw_if_any(recipe_);
    job_.emplace(make_job(*prepared_));
    if (const auto& composition = job_->composition; composition && !composition->sync->traits().lockstep)
      GTEST_SKIP() << "its workers do not keep step";
  }

  template <typename RunRanks>
  WorldOutcome outcome(const RunRanks& run) {
    WorldOutcome result;
    run([&](World& world) {
      const auto meter = make_metered(world);
      Cores cores(1);
      Team team(*meter, cores, job_->composition != nullptr);
      Training training(*job_, *disk_, world.clock(), team, "", 1);
      const RunSummary summary = training.run(false);
      if (world.rank() == 0)
        result = {summary.weights_sha256, summary.train_loss, summary.test->loss, summary.test->accuracy};
    });
    return result;
  }
  WorldOutcome threads() {
    return outcome([](const Program& program) { run_in_threads(lockstep_workers, {}, program); });
  }
  WorldOutcome simulated(const SimCluster& cluster) {
    return outcome([&](const Program& program) { run_in_simulation(cluster, {}, program).throw_if_failed(); });
  }

  std::unique_ptr<Disk> disk_ = make_real_disk();
  TempDir dir_;
  const std::string recipe_ = dir_.path("recipe.toml");
  std::optional<PreparedRun> prepared_;
  std::optional<TrainingJob> job_;
};

TEST_P(LockstepSystem, HasTheSameBitsInThreadsAndInASimulation) {
  if (const auto found = measures.find(GetParam()); found != measures.end()) GTEST_SKIP() << found->second;
  const WorldOutcome wanted = threads();
  SimCluster one;
  one.switches.push_back({"switch", 1e9, 0});
  one.machines.push_back({.name = "machine", .ranks = lockstep_workers});
  EXPECT_EQ(simulated(one), wanted);
  if (!looks_at_machines(GetParam())) {
    EXPECT_EQ(simulated(SimCluster::uniform(lockstep_workers, 1e-5, 1e9)), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, LockstepSystem, testing::ValuesIn(system_names(*make_real_disk(), shipped)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
