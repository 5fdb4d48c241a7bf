// Workers of a system that compute in a bounded memory (GeePS): which plan they follow, and that it changes no bit.

#include "run/fast_memory.h"

#include <gtest/gtest.h>

#include "parallel/planned/plan_view.h"
#include "tests/run/planned_runs.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

using namespace test;

constexpr int workers = 2;

PreparedRun geeps(const TempDir& dir, const std::string& memory) {
  return prepare_in(dir, "name = \"mlp\"\nhidden = [300, 300, 300, 300]\n",
                    "kind = \"synthetic\"\nmake = \"blobs\"\nsamples = 64\nshape = [40]\nclasses = 4\n"
                    "[rule]\nname = \"grad_push\"\n"
                    "[exchange]\nname = \"server\"\nservers = \"all\"\nmemory = \"" +
                        memory + "\"\n");
}

PlanSpec plan_of(const PreparedRun& prepared, std::string* problem = nullptr) {
  Problems problems;
  const PlanSpec plan = plan_in_fast_memory(prepared, workers, problems);
  if (problem) *problem = problems.text("");
  return plan;
}

std::string trained(const TempDir& dir, const PreparedRun& prepared, const PlanSpec& plan) {
  std::string hash;
  run_in_threads(workers, {.seed = 1}, [&](World& outer) {
    const auto world = make_metered(outer);
    const auto disk = make_real_disk();
    TrainingJob job = make_job(prepared);
    Problems problems;
    job.plan = check_run_plan(prepared, plan, workers, 0, problems);
    problems.throw_if_any(prepared.recipe.path);
    Cores cores(1);
    Team team(*world, cores, true);
    Training training(job, *disk, world->clock(), team, dir.path(to_string(plan)), 2);
    const Training::StopFlag stop{false};
    const RunSummary summary = training.run(stop);
    if (world->rank() == 0) hash = summary.weights_sha256;
  });
  return hash;
}

TEST(FastMemory, AModelThatIsLargerTrainsWithTheSameBits) {
  const TempDir dir;
  const PlanSpec whole = plan_of(geeps(dir, "1GiB"));
  EXPECT_EQ(whole, PlanSpec{}) << "what fits stays";
  const PreparedRun small = geeps(dir, "1700KiB");  // of 4 x 300 x 300 weights and as many gradients: 2.2 MiB
  const PlanSpec plan = plan_of(small);
  EXPECT_TRUE(plan.offloads_parameters());
  EXPECT_GT(plan.prefetch, 0) << "nothing is fetched ahead of its use";
  const std::string expected = trained(dir, small, {});
  EXPECT_EQ(trained(dir, small, plan), expected);
  EXPECT_EQ(expected.size(), 64u);
}

TEST(FastMemory, LessMemoryFetchesLessFarAhead) {
  const TempDir dir;
  std::string problem;
  EXPECT_EQ(plan_of(geeps(dir, "4KiB"), &problem), PlanSpec{});
  EXPECT_NE(problem.find("exchange.memory: a worker needs"), std::string::npos) << problem;
  int before = -1;
  for (const char* memory : {"900KiB", "1200KiB", "1700KiB"}) {
    const PlanSpec plan = plan_of(geeps(dir, memory), &problem);
    EXPECT_EQ(problem, "") << memory;
    EXPECT_GE(plan.prefetch, before) << memory;
    before = plan.prefetch;
  }
}

}  // namespace
}  // namespace echelon
