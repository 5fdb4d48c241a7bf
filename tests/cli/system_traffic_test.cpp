// What `echelon systems show` says of a system's traffic is what its run sends.
#include "cli/systems/system_traffic.h"

#include <gtest/gtest.h>

#include "tests/parallel/systems.h"
#include "tests/run/shipped.h"

namespace echelon {
namespace {

using namespace test;

constexpr int workers = 4, batch = 8;

class SystemTraffic : public testing::TestWithParam<std::string> {};

SystemJob job(const SystemFile& file, int steps) {
  return {
      .system = tables_of(file),
      .network = {"lenet5",
                  {},
                  {.kind = data::SyntheticOptions::Kind::images, .samples = 64, .shape = {1, 28, 28}, .classes = 10}},
      .rule = "sgd",
      .lr = 0.001,
      .steps = steps,
      .batch = batch};
}

// A round has costs of its own, so the page is of the difference between a longer and a shorter one.
TEST_P(SystemTraffic, OfItsPageIsThatOfARun) {
  const SystemFile file = read_system(*make_real_disk(), GetParam(), shipped);
  const cli::SystemTraffic page = cli::traffic_of(file, "lenet5", workers, batch);
  const auto shorter = simulate_system(workers, job(file, 2)), longer = simulate_system(workers, job(file, 6));
  double messages = 0, bytes = 0;
  for (std::size_t r = 0; r < longer.size(); ++r) {
    messages += static_cast<double>(longer[r].sent.messages - shorter[r].sent.messages) / 4;
    bytes += static_cast<double>(longer[r].sent.bytes - shorter[r].sent.bytes) / 4;
  }
  EXPECT_EQ(page.buckets, std::max<std::size_t>(1, longer[0].buckets.size()));
  EXPECT_EQ(page.messages, messages);
  Problems problems;
  const Composition c = composition_of(tables_of(file), problems);
  if (!c.codec || c.codec(longer[0].pieces)->same_size_always()) {
    EXPECT_NEAR(page.bytes, bytes, 1e-9 * bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, SystemTraffic,
                         testing::Values("cntk_1bit", "dgc", "fp16", "fusion", "horovod", "low_rank", "poseidon",
                                         "qsgd", "sfb", "signsgd_majority", "sparcml", "strom", "terngrad",
                                         "firecaffe"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
