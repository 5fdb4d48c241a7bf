#include "data/table/value.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numbers>

namespace echelon::data {
namespace {

TEST(TableValue, NumbersInBothNotations) {
  EXPECT_EQ(cell_number(" 3.5 "), 3.5);
  EXPECT_EQ(cell_number("+4"), 4);
  EXPECT_EQ(cell_number("-0.25e2"), -25);
  EXPECT_EQ(cell_number(".5"), 0.5);
  EXPECT_EQ(cell_number("1,234"), 1234);
  EXPECT_EQ(cell_number("-12,345,678.5"), -12345678.5);
  EXPECT_EQ(cell_number("3,5", ','), 3.5);
  EXPECT_EQ(cell_number("1.234,5", ','), 1234.5);
  EXPECT_EQ(cell_number("1.234", ','), 1234);
  for (const char* no : {"", " ", "-", "+", "1,23", "1234,567", "1.2.3", "nan", "inf", "1e999", "0x10", "12a", "1 2"})
    EXPECT_FALSE(cell_number(no)) << no;
  EXPECT_FALSE(cell_number("3.5", ',')) << "a group has three digits";
  EXPECT_FALSE(cell_number(std::string(1000, '1')));
}

TEST(TableValue, WordsThatStandForNothing) {
  for (const char* word : {"", "  ", "NA", "n/a", "NaN", "NULL", "None", "?", "-"}) EXPECT_TRUE(is_missing_cell(word));
  for (const char* word : {"0", "no", "--", "nano"}) EXPECT_FALSE(is_missing_cell(word));
  const std::vector<std::string> more = {"-999"};
  EXPECT_TRUE(is_missing_cell("-999", more));
  EXPECT_FALSE(is_missing_cell("-999"));
}

TEST(TableValue, TruthValues) {
  for (const char* word : {"true", "TRUE", "Yes", "y", "t"}) EXPECT_EQ(cell_boolean(word), true) << word;
  for (const char* word : {"false", "No", "N", "f"}) EXPECT_EQ(cell_boolean(word), false) << word;
  EXPECT_FALSE(cell_boolean("1"));
  EXPECT_FALSE(cell_boolean("maybe"));
}

// The standard library's calendar says the same, over four hundred years and more.
TEST(TableValue, DatesAreDaysSince1970) {
  using namespace std::chrono;
  for (sys_days day = sys_days(year(1890) / 1 / 1); day < sys_days(year(2310) / 1 / 1); day += days(1)) {
    const year_month_day d(day);
    const int y = static_cast<int>(d.year());
    const unsigned m = static_cast<unsigned>(d.month()), n = static_cast<unsigned>(d.day());
    const double since = static_cast<double>(day.time_since_epoch().count());
    char text[32];
    std::snprintf(text, sizeof text, "%04d-%02u-%02u", y, m, n);
    const auto date = cell_date(text, DateOrder::year_first);
    ASSERT_TRUE(date) << text;
    ASSERT_EQ(date->days, since) << text;
    const DateParts parts = parts_of_date(since);
    ASSERT_EQ(parts.year, y);
    ASSERT_EQ(parts.month, static_cast<int>(m));
    ASSERT_EQ(parts.day, static_cast<int>(n));
    ASSERT_EQ(parts.weekday, static_cast<int>(weekday(day).iso_encoding()) - 1);
    ASSERT_EQ(parts.day_of_year, (day - sys_days(d.year() / 1 / 1)).count());
  }
}

TEST(TableValue, DatesInEveryOrderAndWithATime) {
  const double days = cell_date("2024-03-17", DateOrder::year_first)->days;
  EXPECT_EQ(cell_date("17.3.2024", DateOrder::day_first)->days, days);
  EXPECT_EQ(cell_date("17/03/2024", DateOrder::day_first)->days, days);
  EXPECT_EQ(cell_date("03/17/2024", DateOrder::month_first)->days, days);
  const auto noon = cell_date("2024-03-17T12:00:00Z", DateOrder::year_first);
  EXPECT_TRUE(noon->has_time);
  EXPECT_DOUBLE_EQ(noon->days, days + 0.5);
  EXPECT_NEAR(cell_date("2024-03-17 06:30", DateOrder::year_first)->days, days + 6.5 / 24, 1e-9);
  EXPECT_EQ(cell_date("2024-02-29", DateOrder::year_first)->days + 17, days);
  for (const char* no : {"2023-02-29", "2024-13-01", "2024-00-01", "2024-03", "2024-03/17", "2024-03-17T25:00",
                         "2024-03-17x", "17.03.2024", "20240317", ""})
    EXPECT_FALSE(cell_date(no, DateOrder::year_first)) << no;
  EXPECT_FALSE(cell_date("03.17.2024", DateOrder::month_first)) << "points mean the day comes first";
}

TEST(TableValue, CirclePointsAreSinesAndCosines) {
  for (int i = -40; i <= 400; ++i) {
    const double phase = i / 173.0, angle = 2 * std::numbers::pi * phase;
    const CirclePoint p = on_circle(phase);
    EXPECT_NEAR(p.sine, std::sin(angle), 1e-13);
    EXPECT_NEAR(p.cosine, std::cos(angle), 1e-13);
  }
}

}  // namespace
}  // namespace echelon::data
