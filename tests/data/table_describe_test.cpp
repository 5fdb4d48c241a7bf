#include "data/table/describe.h"

#include <numeric>

#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::says;

TableSummary summary_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return describe_table(memory_source("t.csv", {bytes.begin(), bytes.end()}));
}

TEST(TableDescribe, FewWholeNumbersHaveABarEach) {
  std::string text = "rooms,sold\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", 1 + i % 5, i % 2 ? "yes" : "no");
  const TableSummary s = summary_of(text);
  EXPECT_EQ(s.columns[0].histogram, (std::vector<std::uint64_t>(5, 8)));
  EXPECT_EQ(s.columns[1].histogram, (std::vector<std::uint64_t>(2, 20)));
}

TEST(TableDescribe, ColumnsHaveTypeRangeMissingShareAndHistogram) {
  std::string text = "id;day;city;price\n";
  for (int i = 0; i < 24; ++i)
    text += fmt::format("{};2024-01-{:02};{};{}\n", i, i + 1, i % 4 ? "Bern" : "", i < 12 ? 1.5 : 100 + i);
  const TableSummary s = summary_of(text);
  EXPECT_EQ(s.rows, 24u);
  ASSERT_EQ(s.columns.size(), 4u);
  EXPECT_EQ(s.columns[0].role, SchemaColumn::Role::left_out);
  EXPECT_EQ(s.columns[1].type, ColumnType::date);
  EXPECT_EQ(date_text(s.columns[1].least), "2024-01-01");
  EXPECT_EQ(date_text(s.columns[1].most), "2024-01-24");
  EXPECT_EQ(s.columns[2].missing, 6u);
  EXPECT_EQ(s.columns[2].top, (std::vector<std::pair<std::string, std::uint64_t>>{{"Bern", 18}}));
  const ColumnSummary& price = s.columns[3];
  EXPECT_EQ(price.role, SchemaColumn::Role::target);
  EXPECT_EQ(price.least, 1.5);
  EXPECT_EQ(price.most, 123);
  EXPECT_EQ(price.median, (1.5 + 112) / 2);
  ASSERT_EQ(price.histogram.size(), 12u);
  EXPECT_EQ(price.histogram.front(), 12u);
  EXPECT_EQ(std::accumulate(price.histogram.begin(), price.histogram.end(), std::uint64_t{0}), 24u);
  EXPECT_EQ(s.task, TableTask::regress);
}

TEST(TableDescribe, WhatCannotBeLearntIsShownAllTheSame) {
  const TableSummary s = summary_of("a,b\n1,x\n2,x\n");
  EXPECT_EQ(s.columns.size(), 2u);
  ASSERT_EQ(s.notes.size(), 1u);
  EXPECT_TRUE(says(s.notes[0], "one value only"));
}

TEST(TableDescribe, BarsGrowWithTheCounts) {
  EXPECT_EQ(bars(std::vector<std::uint64_t>{0, 1, 4, 8}), " \u2581\u2584\u2588");
  EXPECT_EQ(bars(std::vector<std::uint64_t>{0, 0}), "  ");
  EXPECT_EQ(bars({}), "");
}

}  // namespace
}  // namespace echelon::data
