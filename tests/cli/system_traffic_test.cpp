// What `echelon systems show` says of a system's traffic is what its run sends.
#include "cli/systems/system_traffic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/systems.h"
#include "tests/run/shipped.h"

namespace echelon {
namespace {

using namespace test;

constexpr int workers = 4, batch = 8;

class SystemTraffic : public testing::TestWithParam<std::string> {};

// Asynchronous workers have their own parts of the data, so that all do equally many steps.
std::string with_own_work(SystemFile file) {
  const auto name = file.sync.items.find("name");
  if (name == file.sync.items.end()) return tables_of(file);
  const auto& kind = std::get<std::string>(name->second.value);
  if (kind == "async" || kind == "value" || kind == "approximate") file.sync.items["work"] = text("own");
  return tables_of(file);
}

SystemJob job(const SystemFile& file, std::int64_t steps) {
  return {
      .system = with_own_work(file),
      .network = {"lenet5",
                  {},
                  {.kind = data::SyntheticOptions::Kind::images, .samples = 64, .shape = {1, 28, 28}, .classes = 10}},
      .rule = "sgd",
      .lr = 0.001,
      .steps = static_cast<int>(steps),
      .batch = batch};
}

// A round has costs of its own, so the page is of the difference between a longer and a shorter one.
TEST_P(SystemTraffic, OfItsPageIsThatOfARun) {
  const SystemFile file = read_system(*make_real_disk(), GetParam(), shipped);
  Problems problems;
  const Composition c = composition_of(tables_of(file), problems);
  if (c.exchange->traits().coordinates) GTEST_SKIP() << "no replica: tests/parallel/sandblaster_test.cpp";
  const cli::SystemTraffic page = cli::traffic_of(file, "lenet5", workers, batch);
  EXPECT_NE(page.formula, "");
  EXPECT_NE(page.messages_formula, "");
  if (c.exchange->traits().shared_memory) return;  // it sends nothing, and has no simulation
  const std::int64_t period = c.when.at_end ? 64 : c.exchange->steps_between(c.when.tau);
  const std::int64_t warm_up = file.codec.items.contains("warmup_epochs") ? 24 : 0;  // the page is of what follows it
  const std::int64_t begin = warm_up + period * std::max<std::int64_t>(1, 2 / period),
                     more = c.when.probability < 1 ? 40 : period * std::max<std::int64_t>(1, 4 / period);
  const auto shorter = simulate_system(workers, job(file, begin)),
             longer = simulate_system(workers, job(file, begin + more));
  double messages = 0, bytes = 0;
  for (std::size_t r = 0; r < longer.size(); ++r) {
    messages += static_cast<double>(longer[r].sent.messages - shorter[r].sent.messages) / static_cast<double>(more);
    bytes += static_cast<double>(longer[r].sent.bytes - shorter[r].sent.bytes) / static_cast<double>(more);
  }
  if (!page.measured && !c.uses_messages()) {
    EXPECT_EQ(page.buckets, std::max<std::size_t>(1, longer[0].buckets.size()));
  }
  const auto near = [](double said, double seen, double allowed) {
    EXPECT_LE(seen, said * (1 + allowed));
    EXPECT_GE(seen, said / (1 + allowed));
  };
  using Exactness = ExchangeKind::Exactness;
  if (page.at_most || c.exchange->traffic_exactness() == Exactness::most) {  // it depends on who is how fast
    if (c.codec_choice.empty()) {                                            // those of some codecs are more
      EXPECT_LE(messages, page.messages * (1 + 1e-9));
    }
    EXPECT_LE(bytes, page.bytes * (1 + 1e-9));
    EXPECT_GE(bytes, 0.05 * page.bytes);
    return;
  }
  if (page.measured) {  // a run measures into how many buckets it cuts the gradient
    EXPECT_GE(messages, page.messages);
    return near(page.bytes, bytes, 0.02);
  }
  const bool drawn = c.when.probability < 1 || c.exchange->traffic_exactness() == Exactness::mean;
  near(page.messages, messages, drawn ? 0.5 : 1e-9);
  const bool varies = c.codec && !c.codec(longer[0].pieces)->same_size_always();
  near(page.bytes, bytes, drawn ? 0.5 : varies ? 3 : 1e-9);  // what a codec writes depends on the gradients
}

INSTANTIATE_TEST_SUITE_P(Shipped, SystemTraffic, testing::ValuesIn(system_names(*make_real_disk(), shipped)),
                         [](const auto& info) { return info.param; });

struct Formula {
  const char* system;
  double bytes;  // in bytes of the model as encoded
};
class SystemFormula : public testing::TestWithParam<Formula> {};

// The formula of the page is that of its number; ranks tell each other little besides.
TEST_P(SystemFormula, IsThatOfItsNumber) {
  const SystemFile file = read_system(*make_real_disk(), GetParam().system, shipped);
  const cli::SystemTraffic page = cli::traffic_of(file, "lenet5", workers, batch);
  EXPECT_NEAR(page.bytes, GetParam().bytes * page.encoded_bytes, 0.02 * page.bytes) << page.formula;
  const double n = workers, times = GetParam().bytes;
  EXPECT_EQ(page.formula.substr(0, page.formula.find(':')), times == n * (n - 1)   ? "n (n-1) W"
                                                            : times == 2 * (n - 1) ? "2 (n-1) W"
                                                                                   : "n log2 n W");
}

INSTANTIATE_TEST_SUITE_P(Shipped, SystemFormula,
                         testing::Values(Formula{"bsp", 6}, Formula{"horovod", 6}, Formula{"firecaffe", 6},
                                         Formula{"butterfly", 8}, Formula{"rabenseifner", 6}, Formula{"bigdl", 6},
                                         Formula{"fp16", 6}, Formula{"one_bit", 12}, Formula{"top_1_percent", 12},
                                         Formula{"low_rank", 6}, Formula{"cntk_1bit", 6}, Formula{"hierarchical", 6}),
                         [](const auto& info) { return std::string(info.param.system); });

}  // namespace
}  // namespace echelon
