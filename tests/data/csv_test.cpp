#include "data/formats/csv.h"

#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::fixture;
using test::label;
using test::says;
using test::values;

SourcePtr csv(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source("t.csv", {bytes.begin(), bytes.end()});
}

TEST(Csv, ReadsWhatPythonQuoted) {
  CsvOptions o;
  o.ignore = {"note"};
  const auto d = read_csv(fixture("quoted.csv"), o);
  ASSERT_EQ(d->size(), 3u);
  EXPECT_EQ(d->fields()[0], (Field{"features", DType::f32, Shape{2}}));
  EXPECT_EQ(d->info().class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(values<float>(*d, 0, 0), (std::vector<float>{1.5, -2}));
  EXPECT_EQ(values<float>(*d, 1, 0), (std::vector<float>{300, 4}));
  EXPECT_EQ(values<float>(*d, 2, 0), (std::vector<float>{0.125, 7}));
  EXPECT_EQ(label(*d, 0), 0);
  EXPECT_EQ(label(*d, 1), 1);
}

TEST(Csv, CellsAreWhatPythonWrote) {
  const auto source = fixture("quoted.csv");
  CsvRows rows(*source, ',');
  std::vector<CsvRows::Cell> row;
  ASSERT_TRUE(rows.next(row));
  EXPECT_EQ(row[1].text, "the \"height\"");
  ASSERT_TRUE(rows.next(row));
  ASSERT_TRUE(rows.next(row));
  EXPECT_EQ(row[2].text, "a \"quoted\", note\nover two lines");
  EXPECT_EQ(rows.line(), 3u);
  ASSERT_TRUE(rows.next(row));
  EXPECT_EQ(rows.line(), 5u);
  EXPECT_FALSE(rows.next(row));
}

TEST(Csv, LabelsByNameNumberOrHabit) {
  const auto by = [](const std::string& text, const std::string& column) {
    CsvOptions o;
    o.label = column;
    return label(*read_csv(csv(text), o), 0);
  };
  EXPECT_EQ(by("a,b,c\n1,2,3\n", "b"), 2);
  EXPECT_EQ(by("a,b,c\n1,2,3\n", "0"), 1);
  EXPECT_EQ(by("a,b,c\n1,2,3\n", "-2"), 2);
  EXPECT_EQ(by("a,label,c\n1,2,3\n", ""), 2);
  EXPECT_EQ(by("a,b,c\n1,2,3\n", ""), 3);
  EXPECT_EQ(by("1,2,3\n", ""), 3) << "no header";
  EXPECT_TRUE(says(complaint_of([&] { by("a,b\n1,2\n", "z"); }), "there is no column 'z'; it has: a, b"));
}

TEST(Csv, TasksAreTold) {
  const auto field = [](const std::string& text, CsvOptions::Task task, std::int64_t classes = 0) {
    CsvOptions o;
    o.task = task;
    o.classes = classes;
    const auto d = read_csv(csv(text), o);
    return d->fields().size() > 1 ? d->fields()[1].name : "none";
  };
  using Task = CsvOptions::Task;
  EXPECT_EQ(field("1,2\n3,4\n", Task::automatic), "label");
  EXPECT_EQ(field("1,2.5\n3,4\n", Task::automatic), "target");
  EXPECT_EQ(field("1,2000\n", Task::automatic), "target");
  EXPECT_EQ(field("1,2000\n", Task::classify, 2001), "label");
  EXPECT_EQ(field("1,2\n", Task::regress), "target");
  EXPECT_EQ(field("1,2\n", Task::none), "none");
}

TEST(Csv, LineEndsBlankLinesAndMarksDoNotMatter) {
  for (const char* text : {"1,2\n3,4\n", "1,2\r\n3,4\r\n", "1,2\n3,4", "\n1,2\n\n\n3,4\n\n",
                           "\xEF\xBB\xBF"
                           "1,2\n3,4\n",
                           "\"1\",\"2\"\r\n3,4"}) {
    const auto d = read_csv(csv(text), {});
    EXPECT_EQ(d->size(), 2u) << text;
    EXPECT_EQ(values<float>(*d, 1, 0)[0], 3) << text;
    EXPECT_EQ(label(*d, 1), 4) << text;
  }
}

TEST(Csv, SaysWhatIsWrongWhere) {
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("a,b\n1,2\nx,3\n"), {}); }),
                   "t.csv: at byte 8: expected a number on line 3, column 'a'"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("a,b\n1,2\n,3\n"), {}); }), "found nothing"));
  EXPECT_TRUE(
      says(complaint_of([] { read_csv(csv("a,b\n1,2\n1,2,3\n"), {}); }), "expected 2 cells on line 3, found 3"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("1,\"2\n"), {}); }), "the closing quote of a cell on line 1"));
  EXPECT_TRUE(
      says(complaint_of([] { read_csv(csv("1,\"2\"x\n"), {}); }), "expected ',' or the end of line 1, found 'x'"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv(""), {}); }), "an empty file"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("a,b\n"), {}); }), "at least one row below the header"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("nan,1\n"), {}); }), "expected a number on line 1"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(csv("1,1\ninf,1\n"), {}); }), "expected a number on line 2"));
}

TEST(Csv, TestSplitUsesTheClassesOfTheTrainSplit) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  test::write_bytes(dir.path("train.csv"), "x,label\n1,pear\n2,apple\n3,fig\n");
  test::write_bytes(dir.path("test.csv"), "x,label\n1,pear\n");
  EXPECT_EQ(label(*open_csv(*disk, dir.path(), "test", {}), 0), 2);
  EXPECT_EQ(open_csv(*disk, dir.path(), "test", {})->info().classes, 3);
  test::write_bytes(dir.path("test.csv"), "x,label\n1,plum\n");
  EXPECT_TRUE(says(complaint_of([&] { open_csv(*disk, dir.path(), "test", {}); }),
                   "one of the classes apple, fig, pear, found 'plum'"));
}

TEST(Csv, SaysThatTheDelimiterMayBeAnother) {
  const std::string complaint = complaint_of([] { read_csv(csv("a;b;label\n1;2;x\n3;4;y\n"), {}); });
  EXPECT_TRUE(says(complaint, "delimiter = \",\" there is one column only"));
  EXPECT_TRUE(says(complaint, "kind = \"table\""));
}

}  // namespace
}  // namespace echelon::data
