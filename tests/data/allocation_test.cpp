// Reading ahead allocates nothing once it is warm. Every allocation of the program is counted.

#include "data/array.h"
#include "data/formats/idx.h"
#include "data/formats/text.h"
#include "data/images/transform.h"
#include "data/loader.h"
#include "data/table/open_table.h"
#include "tests/data/support.h"
#include "tests/support/allocations.h"
#include "tests/support/source_path.h"

namespace echelon::data {
namespace {

std::int64_t allocations_of(DatasetPtr dataset, int prefetch) {
  LoaderOptions o;
  o.batches = {{0, 16}};
  o.shards = 2;
  o.prefetch = prefetch;
  Loader loader(std::move(dataset), o);
  for (std::uint64_t step = 0; step < 20; ++step) loader.at(step);
  const std::int64_t before = echelon::test::allocations();
  for (std::uint64_t step = 20; step < 60; ++step) loader.at(step);
  return echelon::test::allocations() - before;
}

TEST(Allocation, NoneInTheSteadyState) {
  if (!echelon::test::allocations_are_counted()) GTEST_SKIP() << "a sanitizer has its own malloc";
  const auto disk = make_real_disk();
  const auto digits = open_idx(*disk, source_path("share/digits"), "test", {});
  std::vector<TransformPtr> chain;
  chain.push_back(make_crop({.height = 24, .width = 24, .pad = 2, .centre = false}));
  chain.push_back(make_copy("image", "target"));
  chain.push_back(make_flip(0.5f));
  chain.push_back(make_noise(0.1f));
  const auto augmented = shuffled(mapped(cached(digits, 1 << 30), std::move(chain)));
  EXPECT_EQ(allocations_of(augmented, 0), 0);
  EXPECT_EQ(allocations_of(augmented, 3), 0);
  TextOptions text;
  text.windows = TextOptions::Windows::random;
  EXPECT_EQ(allocations_of(
                read_text_dataset(open_source(*disk, source_path("tests/data/allocation_test.cpp")), "train", text), 2),
            0);
  std::string rows = "x,c,y\n";
  for (int i = 0; i < 100; ++i) rows += fmt::format("{},word {},{}.5\n", i, i % 30, i * 7 % 13);
  const auto bytes = std::as_bytes(std::span(rows));
  const auto table = rows_of_table(read_table_file(memory_source("t.csv", {bytes.begin(), bytes.end()}), {}));
  EXPECT_EQ(allocations_of(shuffled(encode_rows(*table, *table, "train")), 0), 0);
}

}  // namespace
}  // namespace echelon::data
