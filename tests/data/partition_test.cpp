#include "data/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/loader.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::numbers;
using test::says;

LoaderOptions of_workers(std::uint64_t parts, std::uint64_t batch, double dirichlet = 0) {
  LoaderOptions o;
  o.seed = 3;
  o.batches = {{0, batch}};
  o.parts = parts;
  o.partition = {.fixed = true, .dirichlet = dirichlet};
  o.prefetch = 0;
  return o;
}

// The samples that a worker sees in an epoch, in order, told from the samples themselves.
std::vector<std::uint64_t> samples_of(Loader& loader, std::uint64_t part, std::uint32_t epoch) {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t step = loader.batches().steps_before(epoch); step < loader.batches().steps_before(epoch + 1);
       ++step) {
    const Batch& batch = loader.at(step, part);
    for (std::uint64_t i = 0; i < batch.samples(); ++i)
      seen.push_back(static_cast<std::uint64_t>(batch.field_as<float>(0, 0)[2 * i]));
  }
  return seen;
}

TEST(Partition, AWorkersSamplesNeverLeaveIt) {
  for (const auto& [size, batch, parts] : {std::tuple(100, 16, 4), std::tuple(97, 10, 3), std::tuple(12, 5, 5)}) {
    Loader loader(numbers(static_cast<std::uint64_t>(size)),
                  of_workers(static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(batch)));
    std::set<std::uint64_t> all;
    for (std::uint64_t part = 0; part < static_cast<std::uint64_t>(parts); ++part) {
      const auto first = samples_of(loader, part, 0), second = samples_of(loader, part, 1);
      const std::set<std::uint64_t> own(first.begin(), first.end());
      EXPECT_EQ(own.size(), first.size()) << "each of them once an epoch";
      EXPECT_EQ(own, std::set<std::uint64_t>(second.begin(), second.end()));
      if (first.size() > 8) {
        EXPECT_NE(first, second) << "in another order";
      }
      all.insert(first.begin(), first.end());
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(size)) << "every sample is somebody's";
  }
}

TEST(Partition, TheLedgerSaysWhatTheWorkersSee) {
  Loader loader(numbers(50), of_workers(3, 12));
  for (std::uint64_t step = 0; step < 8; ++step) {
    std::vector<std::uint64_t> seen;
    for (std::uint64_t part = 0; part < 3; ++part) {
      const Batch& batch = loader.at(step, part);
      for (std::uint64_t i = 0; i < batch.samples(); ++i)
        seen.push_back(static_cast<std::uint64_t>(batch.field_as<float>(0, 0)[2 * i]));
    }
    EXPECT_EQ(seen, loader.origins(step));
  }
}

// Mean over the parts of the largest share that a class has in it; the samples have ten classes, as many of each.
double largest_share(double dirichlet) {
  constexpr std::uint64_t parts = 8;
  Loader loader(numbers(2000), of_workers(parts, 40, dirichlet));
  double sum = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    std::map<std::uint64_t, double> classes;
    const auto seen = samples_of(loader, part, 0);
    for (const std::uint64_t i : seen) classes[i % 10] += 1.0 / static_cast<double>(seen.size());
    sum += std::ranges::max_element(classes, {}, [](const auto& c) { return c.second; })->second;
  }
  return sum / static_cast<double>(parts);
}

TEST(Partition, ASmallDirichletParameterGivesEachWorkerFewClasses) {
  EXPECT_LT(largest_share(1000), 0.15);  // a tenth each
  EXPECT_GT(largest_share(0.1), 0.35);
  EXPECT_GT(largest_share(0.1), largest_share(1));
  EXPECT_GT(largest_share(1), largest_share(100));
}

TEST(Partition, SkewedPartsStillHaveEverySampleOnce) {
  Loader loader(numbers(300), of_workers(4, 20, 0.1));
  std::vector<std::uint64_t> all;
  for (std::uint64_t part = 0; part < 4; ++part) {
    const auto seen = samples_of(loader, part, 0);
    all.insert(all.end(), seen.begin(), seen.end());
  }
  std::ranges::sort(all);
  for (std::uint64_t i = 0; i < 300; ++i) ASSERT_EQ(all[i], i);
}

TEST(Partition, IsRefusedWhereBatchesGrow) {
  LoaderOptions o = of_workers(2, 10);
  o.batches.push_back({5, 20});
  EXPECT_TRUE(says(complaint_of([&] { Loader loader(numbers(100), o); }), "schedule.growth"));
}

}  // namespace
}  // namespace echelon::data
