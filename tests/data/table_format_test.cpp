#include "data/table/format.h"

#include "data/table/profile.h"
#include "data/table/rows.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;

SourcePtr table_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source("t.csv", {bytes.begin(), bytes.end()});
}

TEST(TableFormat, DelimiterDecimalAndHeaderAreFound) {
  const auto found = [](std::string_view text) { return find_format(table_text(text)); };
  EXPECT_EQ(found("a,b\n1,2\n").delimiter, ',');
  EXPECT_EQ(found("a;b\n1;2\n").delimiter, ';');
  EXPECT_EQ(found("a\tb\n1\t2\n").delimiter, '\t');
  EXPECT_EQ(found("a|b\n1|2\n").delimiter, '|');
  const TableFormat german = found("preis;ort\n1,5;Bern\n2,25;Basel, Stadt\n");
  EXPECT_EQ(german.delimiter, ';');
  EXPECT_EQ(german.decimal, ',');
  EXPECT_TRUE(german.header);
  EXPECT_EQ(found("a;b\n1.5;2\n").decimal, '.');
  EXPECT_EQ(found("a;b\n1,5;2.5\n").decimal, '.') << "not every number has a comma";
  EXPECT_FALSE(found("1,2\n3,4\n").header);
  EXPECT_FALSE(found("red,red\nred,green\n").header) << "names differ";
  EXPECT_TRUE(found("colour,other\nred,blue\nred,green\n").header);
  EXPECT_FALSE(found("2024-01-01,x\n2024-01-02,y\n").header) << "a date is no name";
  EXPECT_TRUE(found("text,n\n\"a, \"\"b\"\"\",1\n").quotes);
  EXPECT_EQ(to_string(german),
            "delimited text: UTF-8, cells separated by semicolons, decimal comma, none quoted, with a header");
}

TEST(TableFormat, WishesWin) {
  FormatWishes w;
  w.delimiter = ';';
  w.header = false;
  w.decimal = ',';
  const TableFormat f = find_format(table_text("a,b\n1,2\n"), w);
  EXPECT_EQ(f.delimiter, ';');
  EXPECT_EQ(f.decimal, ',');
  EXPECT_FALSE(f.header);
}

TEST(TableFormat, EncodingsBecomeUtf8) {
  const auto latin = table_text("ort,n\nZ\xFCrich,1\n");
  const TableFormat f = find_format(latin);
  EXPECT_EQ(f.encoding, Encoding::latin1);
  const auto utf8 = as_utf8(latin, f);
  const auto rows = read_rows(*utf8, f);
  std::vector<std::string_view> cells;
  ASSERT_TRUE(rows->next(cells));
  EXPECT_EQ(cells[0], "Z\xC3\xBCrich");
  const auto marked = table_text("\xEF\xBB\xBFort,n\nZ\xC3\xBCrich,1\n");
  const TableFormat g = find_format(marked);
  EXPECT_TRUE(g.byte_order_mark);
  EXPECT_EQ(g.encoding, Encoding::utf8);
  EXPECT_EQ(read_rows(*marked, g)->names()[0], "ort");
  const auto wide =
      table_text(std::string_view("\xFF\xFE"
                                  "a\0;\0b\0\n\0001\0;\0002\0\n\0",
                                  18));
  const TableFormat h = find_format(wide);
  EXPECT_EQ(h.encoding, Encoding::utf16);
  EXPECT_EQ(h.delimiter, ';');
  EXPECT_EQ(read_rows(*as_utf8(wide, h), h)->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(says(complaint_of([] { find_format(table_text(std::string_view("a,b\0c", 5))); }), "byte of zero"));
  EXPECT_TRUE(says(complaint_of([] { find_format(table_text(" \n\n")); }), "empty"));
  FormatWishes wish;
  wish.encoding = Encoding::utf8;
  EXPECT_TRUE(says(complaint_of([&] { find_format(latin, wish); }), "not UTF-8"));
}

TEST(TableFormat, NamesAreUnique) {
  const auto source = table_text("a,,a,a\n1,2,3,4\n");
  const auto rows = read_rows(*source, {});
  EXPECT_EQ(rows->names(), (std::vector<std::string>{"a", "column_1", "a.2", "a.3"}));
  EXPECT_EQ(rows->repeated(), (std::vector<std::string>{"a", "a"}));
}

TEST(TableFormat, RowsOfAnotherLengthAreRefusedWithTheDelimiter) {
  const std::string complaint = complaint_of([] {
    const auto source = table_text("a,b\n1,2\n3\n4,5\n6,7,8\n");
    profile_table(*source, find_format(source));
  });
  EXPECT_TRUE(says(complaint, "expected 2 cells on every line, but line 3 has 1, line 5 has 3"));
  EXPECT_TRUE(says(complaint, "delimiter"));
}

TEST(TableFormat, JsonLinesHaveTheirColumnsInTheOrderOfTheText) {
  const auto source =
      table_text("{\"zoo\": 1, \"b\": {\"inner\": 2}, \"ape\": 3}\n{\"new\": 1, \"ape\": 4, \"c\": 2}\n");
  const auto rows = read_rows(*source, find_format(source));
  std::vector<std::string_view> cells;
  while (rows->next(cells)) {
  }
  EXPECT_EQ(rows->names(), (std::vector<std::string>{"zoo", "b", "ape", "new", "c"}));
}

TEST(TableFormat, JsonLinesMayAddColumns) {
  const auto source = table_text("{\"a\": 1, \"b\": \"x\"}\n\n{\"c\": true, \"a\": null}\r\n{\"b\": [1, 2]}\n");
  const TableFormat f = find_format(source);
  EXPECT_TRUE(f.json_lines);
  const TableProfile p = profile_table(*source, f);
  ASSERT_EQ(p.columns.size(), 3u);
  EXPECT_EQ(p.rows, 3u);
  EXPECT_EQ(p.columns[0].name, "a");
  EXPECT_EQ(p.columns[0].missing, 2u);
  EXPECT_EQ(p.columns[2].name, "c");
  EXPECT_EQ(p.columns[2].missing, 2u);
  EXPECT_EQ(p.columns[2].booleans, 1u);
  EXPECT_TRUE(says(complaint_of([] {
                     const auto bad = table_text("{\"a\": 1}\n[1]\n");
                     profile_table(*bad, find_format(bad));
                   }),
                   "line 2: expected a JSON object"));
}

TEST(TableProfile, TypesFollowFromTheCells) {
  std::string text = "n,b,c,d,t,e\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{},2024-01-{:02},name {},NA\n", i * 0.5, i % 2 ? "yes" : "no", i % 3 ? "red" : "blue",
                        i % 28 + 1, i);
  const auto source = table_text(text);
  const TableProfile p = profile_table(*source, find_format(source));
  const auto type = [&](std::size_t c) { return type_of(p.columns[c]); };
  EXPECT_EQ(type(0), ColumnType::number);
  EXPECT_EQ(type(1), ColumnType::boolean);
  EXPECT_EQ(type(2), ColumnType::category);
  EXPECT_EQ(type(3), ColumnType::date);
  EXPECT_EQ(type(4), ColumnType::text);
  EXPECT_EQ(p.columns[5].missing, 60u);
  EXPECT_EQ(p.columns[0].most, 29.5);
  EXPECT_EQ(p.columns[2].values.at("blue"), 20u);
}

TEST(TableProfile, DateOrderIsTheOneThatFitsAllCells) {
  const auto order = [](const char* text) {
    const auto source = table_text(text);
    return date_order_of(profile_table(*source, find_format(source)).columns[0]);
  };
  EXPECT_EQ(order("d,x\n13/02/2024,1\n01/02/2024,2\n"), DateOrder::day_first);
  EXPECT_EQ(order("d,x\n02/13/2024,1\n01/02/2024,2\n"), DateOrder::month_first);
  EXPECT_EQ(order("d,x\n01/02/2024,1\n"), DateOrder::month_first);
  EXPECT_EQ(order("d,x\n01.02.2024,1\n"), DateOrder::day_first);
}

}  // namespace
}  // namespace echelon::data
