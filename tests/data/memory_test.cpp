// Samples that the calling program holds.

#include "data/memory.h"

#include "data/array.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::label;
using test::says;
using test::values;

struct Held {
  std::vector<float> x{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<std::int32_t> y{0, 2, 1, 0};
};

DatasetPtr dataset_of(const std::shared_ptr<Held>& held) {
  const auto x = borrowed_source("x", std::as_bytes(std::span(held->x)), held),
             y = borrowed_source("y", std::as_bytes(std::span(held->y)), held);
  return array_dataset(dense_array(x, Element::f32, false, {4, 2}, 0), dense_array(y, Element::i32, false, {4}, 0), {});
}

DataSpec spec_of(const Options& table, const MemoryParts& parts, Problems& problems) {
  OptionReader reader(table, problems);
  return read_data_spec(reader, {.memory = parts});
}

TEST(Memory, IsReadWhereItLiesAndKept) {
  auto held = std::make_shared<Held>();
  const std::weak_ptr<Held> watched = held;
  DatasetPtr dataset = dataset_of(held);
  held->x[2] = 42;  // after the data set was made: it sees the same memory
  held.reset();
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(values<float>(*dataset, 1, 0), (std::vector<float>{42, 3}));
  EXPECT_EQ(label(*dataset, 1), 2);
  dataset.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(Memory, OpensThePartsThatWereHandedOver) {
  const auto disk = make_real_disk();
  const MemoryParts parts{{"train", dataset_of(std::make_shared<Held>())},
                          {"validation", dataset_of(std::make_shared<Held>())}};
  Problems problems;
  const DataSpec spec = spec_of(describe_memory(parts), parts, problems);
  ASSERT_TRUE(problems.empty()) << problems.text("");
  EXPECT_TRUE(spec.has_validation());
  EXPECT_EQ(spec.open(*disk, "train"), parts.at("train"));
  EXPECT_EQ(spec.open(*disk, "validation"), parts.at("validation"));
  EXPECT_THROW(spec.open(*disk, "test"), NoSplit);
}

TEST(Memory, IsDescribedSoThatARunCanBeOpenedWithoutTheSamples) {
  const auto disk = make_real_disk();
  const MemoryParts parts{{"train", dataset_of(std::make_shared<Held>())}};
  Options table = describe_memory(parts);
  table.items["validation"].value = 0.5;
  Problems problems;
  const DataSpec spec = spec_of(table, {}, problems);
  ASSERT_TRUE(problems.empty()) << problems.text("");
  const DatasetPtr absent = spec.open(*disk, "train"), whole = parts.at("train");
  EXPECT_EQ(absent->fields(), whole->fields());
  EXPECT_EQ(absent->info().classes, 3);
  EXPECT_EQ(absent->size(), 2u);
  Sample sample(absent->fields());
  EXPECT_TRUE(says(complaint_of([&] { absent->get(0, {}, sample.ref()); }), "hand them over again"));
}

TEST(Memory, OtherSamplesThanTheRecipeDescribesAreRefused) {
  const auto disk = make_real_disk();
  const auto held = std::make_shared<Held>();
  const Options table = describe_memory({{"train", dataset_of(held)}});
  held->x[0] = 7;
  Problems problems;
  const DataSpec spec = spec_of(table, {{"train", dataset_of(held)}}, problems);
  EXPECT_TRUE(says(complaint_of([&] { spec.open(*disk, "train"); }), "others than those that the recipe describes"));
}

TEST(Memory, ARecipeAloneCannotNameIt) {
  Options table;
  table.where = "data";
  table.items["kind"].value = std::string("memory");
  Problems problems;
  spec_of(table, {}, problems);
  EXPECT_TRUE(says(problems.text(""), "is for programs that hand over their samples"));
}

}  // namespace
}  // namespace echelon::data
