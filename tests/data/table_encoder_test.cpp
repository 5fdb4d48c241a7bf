#include "data/table/encoder.h"

#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "data/open.h"
#include "data/table/kind.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;
using test::values;

SourcePtr rows_text(std::string_view text, const std::string& name = "t.csv") {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source(name, {bytes.begin(), bytes.end()});
}

TableFilePtr file_of(std::string_view text, const TableOptions& options = {}) {
  return read_table_file(rows_text(text), options);
}

DatasetPtr encoded(std::string_view text, const TableOptions& options = {}) {
  const auto rows = rows_of_table(file_of(text, options));
  return encode_rows(*rows, *rows, "train");
}

TEST(TableEncoder, NumbersAreStandardisedAndMissingOnesFilledAndMarked) {
  const auto d = encoded("x,y\n1,0.5\n3,1.5\n,2.5\n8,3.5\n");
  ASSERT_EQ(d->fields()[0], (Field{"features", DType::f32, Shape{2}}));
  ASSERT_EQ(d->fields()[1], (Field{"target", DType::f32, Shape{}}));
  const double mean = 4, deviation = std::sqrt((9 + 1 + 16) / 3.0);
  const auto x = [&](double v) { return static_cast<float>((v - mean) / deviation); };
  EXPECT_EQ(values<float>(*d, 0, 0), (std::vector<float>{x(1), 0}));
  EXPECT_EQ(values<float>(*d, 2, 0), (std::vector<float>{x(3), 1})) << "the median, and a mark";
  EXPECT_EQ(d->info().targets.at(0).mean, 2);
  EXPECT_FLOAT_EQ(values<float>(*d, 0, 1)[0] * d->info().targets[0].deviation + 2, 0.5);
  EXPECT_FLOAT_EQ(d->info().table->original(0, values<float>(*d, 3, 1)[0]), 3.5);
  ASSERT_GE(d->info().notes.size(), 2u);
  EXPECT_TRUE(says(d->info().notes[1], "'x' 1 of 4 (25.0 %), filled with the median 3"));
}

TEST(TableEncoder, WishesAboutMissingValuesAndScalesAreFollowed) {
  TableOptions o;
  o.fill_numbers = TableOptions::FillNumbers::mean;
  o.missing_indicator = false;
  o.standardise = o.standardise_target = false;
  o.missing_values = {"-9"};
  const auto d = encoded("x,y\n1,0.5\n3,1.5\n-9,2.5\n8,3.5\n", o);
  EXPECT_EQ(values<float>(*d, 1, 0), (std::vector<float>{3}));
  EXPECT_EQ(values<float>(*d, 2, 0), (std::vector<float>{4}));
  EXPECT_EQ(values<float>(*d, 2, 1), (std::vector<float>{2.5}));
}

TEST(TableEncoder, NumbersBeyondReachOnceScaledAreNamedWithLineAndColumn) {
  const auto fitted = encoded("x,d,y\n1,2024-01-01,0.5\n3,2024-01-02,1.5\n5,2024-01-04,2.5\n");
  const TableEncoder& encoder = *fitted->info().table;
  const auto complaint = [&](std::string_view text, bool with_targets) {
    return complaint_of([&] { encoder.encode(encoder.read(rows_text(text, "new.csv"), with_targets), with_targets); });
  };
  const std::string both = complaint("x,d\n1e18,2024-01-01\n1e45,2024-01-01\n-1e39,2024-01-01\n", false);
  EXPECT_TRUE(says(both, "new.csv: line 3, column 'x': 1e+45 lies"));
  EXPECT_TRUE(says(both, "new.csv: line 4, column 'x': -1e+39 lies"));
  EXPECT_FALSE(says(both, "line 2,"));
  EXPECT_EQ(complaint("x,d,y\n1,2024-01-01,1e45\n", false), "") << "what is predicted is not looked at";
  EXPECT_TRUE(says(complaint("x,d,y\n1,2024-01-01,1e45\n", true), "line 2, column 'y'"));
  TableOptions o;
  o.standardise = false;
  EXPECT_TRUE(says(complaint_of([&] { encoded("x,y\n1e19,0.5\n3,1.5\n5,2.5\n", o); }),
                   "t.csv: line 2, column 'x': 1e+19 is beyond all that can be computed with"));
}

TEST(TableEncoder, CategoriesAreOneHotOrIds) {
  const std::string text = "c,y\nred,1.5\nblue,2\nred,3\n,4\ngreen,5.5\n";
  const auto hot = encoded(text);
  EXPECT_EQ(values<float>(*hot, 0, 0), (std::vector<float>{0, 0, 1, 0})) << "blue, green, red, missing";
  EXPECT_EQ(values<float>(*hot, 1, 0), (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(values<float>(*hot, 3, 0), (std::vector<float>{0, 0, 0, 1}));
  TableOptions o;
  o.one_hot = 2;
  const auto ids = encoded(text, o);
  EXPECT_EQ(ids->fields()[0].name, "categories");
  EXPECT_EQ(ids->fields()[0].dtype, DType::i32);
  EXPECT_EQ(ids->fields()[0].categories, (std::vector<std::int64_t>{5})) << "unknown, three, missing";
  EXPECT_EQ(values<std::int32_t>(*ids, 0, 0)[0], 3);
  EXPECT_EQ(values<std::int32_t>(*ids, 1, 0)[0], 1);
  EXPECT_EQ(values<std::int32_t>(*ids, 3, 0)[0], 4);
  o.fill_categories = TableOptions::FillCategories::most_frequent;
  EXPECT_EQ(values<std::int32_t>(*encoded(text, o), 3, 0)[0], 3) << "red";
}

TEST(TableEncoder, DatesAreDaysAndPlacesOnCircles) {
  TableOptions o;
  o.standardise = false;
  const auto d = encoded("d,y\n2024-01-01,1.5\n2024-01-08T12:00,2\n", o);
  const auto first = values<float>(*d, 0, 0), second = values<float>(*d, 1, 0);
  ASSERT_EQ(first.size(), 7u) << "days, year, week, day";
  EXPECT_EQ(second[0] - first[0], 7.5);
  EXPECT_FLOAT_EQ(first[3], 0);
  EXPECT_FLOAT_EQ(first[4], 1) << "a Monday";
  EXPECT_EQ(second[3], first[3]) << "a week later is the same weekday";
  EXPECT_NEAR(second[6], -1, 1e-6) << "noon is opposite midnight";
  o.dates = TableOptions::Dates::days;
  EXPECT_EQ(encoded("d,y\n2024-01-01,1.5\n2024-01-08,2\n", o)->fields()[0].shape, Shape{1});
  o.dates = TableOptions::Dates::parts;
  EXPECT_EQ(encoded("d,y\n2024-01-01,1.5\n2024-01-08,2\n", o)->fields()[0].shape, Shape{4});
}

TEST(TableEncoder, OnlyTheTrainingRowsAreLookedAt) {
  std::string text = "x,c,y\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{},{}.5\n", i, i % 2 ? "a" : "b", i);
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{},{}.5\n", 1000 + i, i % 2 ? "a" : "z", i);
  const auto rows = rows_of_table(file_of(text));
  const auto train = subset(rows, 0, 50), test = subset(rows, 50, 50);
  const auto a = encode_rows(*train, *train, "train"), b = encode_rows(*train, *test, "test");
  double sum = 0, squares = 0;
  for (int i = 0; i < 50; ++i) {
    const double x = values<float>(*a, static_cast<std::uint64_t>(i), 0)[0];
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum, 0, 1e-4);
  EXPECT_NEAR(squares / 50, 1, 1e-4);
  EXPECT_GT(values<float>(*b, 0, 0)[0], 50) << "far from the training rows";
  EXPECT_EQ(a->info().table->features()[1].categories, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values<float>(*b, 0, 0)[1], 0) << "'z' is none of them";
  EXPECT_EQ(values<float>(*b, 0, 0)[2], 0);
  EXPECT_TRUE(says(b->info().notes.at(0),
                   "test part: column 'c': 25 of 50 rows have a category that the training part does not: 'z'"));
  EXPECT_EQ(b->origin(3, {}), 53u);
  EXPECT_NE(a->info().fingerprint, encode_rows(*rows, *rows, "train")->info().fingerprint);
}

TEST(TableEncoder, TasksAreFound) {
  const auto task = [](std::string_view text, const TableOptions& o = {}) { return file_of(text, o)->schema.task; };
  EXPECT_EQ(task("x,y\n1,cat\n2,dog\n"), TableTask::classify);
  EXPECT_EQ(task("x,y\n1,yes\n2,no\n"), TableTask::classify);
  EXPECT_EQ(task("x,y\n1,1\n2,3\n3,1\n5,3\n"), TableTask::classify);
  EXPECT_EQ(task("x,y\n1,1\n2,3\n3,4\n5,7\n"), TableTask::regress) << "all different";
  EXPECT_EQ(task("x,y\n1,1.5\n2,3\n"), TableTask::regress);
  TableOptions o;
  o.labels = {"a", "b"};
  EXPECT_EQ(task("x,a,b\n1,0,yes\n2,1,no\n", o), TableTask::multi_label);
  EXPECT_EQ(task("x,a,b\n1,0,2.5\n2,1,3\n", o), TableTask::regress);
  const auto d = encoded("x,a,b\n1,0,2.5\n2,1,3\n", o);
  EXPECT_EQ(d->fields()[1], (Field{"target", DType::f32, Shape{2}}));
  EXPECT_EQ(d->info().targets[1].name, "b");
  const auto m = encoded("x,a,b\n1,0,yes\n2,1,no\n", o);
  EXPECT_TRUE(m->info().targets[0].binary);
  EXPECT_EQ(values<float>(*m, 0, 1), (std::vector<float>{0, 1}));
}

TEST(TableEncoder, ClassesAreSortedAsNumbersWhereTheyAre) {
  const auto d = encoded("x,class\n1,10\n2,2\n3,10\n4,2\n5,9\n6,9\n");
  EXPECT_EQ(d->info().class_names, (std::vector<std::string>{"2", "9", "10"}));
  EXPECT_EQ(values<std::int32_t>(*d, 0, 1)[0], 2);
}

TEST(TableEncoder, ColumnsThatTellNothingAreLeftOutWithAWord) {
  std::string text = "id,same,name,x,y\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("{},1,somebody {},{},{}.5\n", 100 + i, i, i * i, i);
  const auto d = encoded(text);
  EXPECT_EQ(d->info().table->feature_width(), 1u) << "x alone";
  EXPECT_TRUE(says(d->info().notes[1], "'id' (it numbers the rows)"));
  EXPECT_TRUE(says(d->info().notes[1], "'same' (it has one value only)"));
  EXPECT_TRUE(says(d->info().notes[1], "'name' (text: 30 different values in 30 rows)"));
  TableOptions o;
  o.types = {{"id", ColumnType::number}};
  EXPECT_EQ(encoded(text, o)->fields()[0].shape, Shape{2}) << "the recipe wins";
}

TEST(TableEncoder, OneOddWordAmongNumbersIsPointedOut) {
  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i) text += i == 7 ? "many,1.5\n" : fmt::format("{},{}.5\n", i * i, i);
  EXPECT_TRUE(says(complaint_of([&] { file_of(text); }),
                   "column 'x' is not taken for numbers because of 'many' on line 9, although 29 of 30 cells are"));
  TableOptions o;
  o.missing_values = {"many"};
  EXPECT_EQ(encoded(text, o)->info().table->features().at(0).type, ColumnType::number);
}

TEST(TableEncoder, RowsWithoutATargetAreLeftOutAndCounted) {
  const auto d = encoded("x,y\n1,0.5\n2,\n3,1.5\n4,NA\n");
  EXPECT_EQ(d->size(), 2u);
  EXPECT_TRUE(says(d->info().notes.back(), "2 rows without a value to predict are left out"));
}

TEST(TableEncoder, EveryProblemIsNamedAtOnce) {
  TableOptions o;
  o.labels = {"prise"};
  o.ignore = {"idd"};
  const std::string complaint = complaint_of([&] { file_of("id,price\n1,2\n3,4\n", o); });
  EXPECT_TRUE(says(complaint, "there is no column 'prise'"));
  EXPECT_TRUE(says(complaint, "did you mean 'price'"));
  EXPECT_TRUE(says(complaint, "there is no column 'idd'"));
  TableOptions regress;
  regress.task = TableTask::regress;
  EXPECT_TRUE(says(complaint_of([&] { file_of("x,y\n1,2\n3,four\n", regress); }), "line 3 has 'four'"));
  EXPECT_TRUE(says(complaint_of([&] { file_of("x,y\n1,a\n3,a\n"); }), "one value only"));
  EXPECT_TRUE(says(complaint_of([&] { file_of("x,y\n1,a\n1,b\n"); }), "no column is left for the features"));
}

TEST(TableEncoder, JsonKeepsEverything) {
  TableOptions o;
  o.one_hot = 2;
  o.missing_values = {"none at all"};
  const std::string text =
      "d,n,c,e,b,y\n2024-01-01,1.1,red,a,yes,0.1\n2024-01-02,,blue,b,no,0.2\n2024-02-03,0.3,,c,yes,0.7\n";
  const auto d = encoded(text, o);
  const Json json = d->info().table->to_json();
  const TableEncoder again(parse_json(json.dump(), "t"), "t");
  EXPECT_EQ(again.to_json().dump(), json.dump());
  EXPECT_EQ(again.features(), d->info().table->features());
  const auto same = again.encode(again.read(rows_text(text), true), true);
  ASSERT_EQ(same->fields(), d->fields());
  for (std::uint64_t i = 0; i < d->size(); ++i) {
    EXPECT_EQ(values<float>(*same, i, 0), values<float>(*d, i, 0));
    EXPECT_EQ(values<std::int32_t>(*same, i, 1), values<std::int32_t>(*d, i, 1));
    EXPECT_EQ(values<float>(*same, i, 2), values<float>(*d, i, 2));
  }
}

TEST(TableEncoder, BrokenJsonIsRefused) {
  const Json good = encoded("x,y\n1,0.5\n3,1.5\n")->info().table->to_json();
  const auto refused = [&](const std::function<void(Json&)>& breaking) {
    Json bad = good;
    breaking(bad);
    return says(complaint_of([&] { TableEncoder(bad, "table.json"); }), "table.json: this is no encoder");
  };
  EXPECT_TRUE(refused([](Json& j) { j.erase("features"); }));
  EXPECT_TRUE(refused([](Json& j) { j["version"] = 2; }));
  EXPECT_TRUE(refused([](Json& j) { j["features"][0]["deviation"] = 0; }));
  EXPECT_TRUE(refused([](Json& j) { j["features"][0]["type"] = "colour"; }));
  EXPECT_TRUE(refused([](Json& j) { j["task"] = "classify"; }));
  EXPECT_TRUE(refused([](Json& j) { j["targets"] = Json::array(); }));
}

TEST(TableEncoder, ReadsFilesToPredictWhateverTheirFormat) {
  const auto encoder = encoded("x,c,y\n1,red,0.5\n3,blue,1.5\n5,red,2\n")->info().table;
  const auto first = [&](const SourcePtr& source) {
    return values<float>(*encoder->encode(encoder->read(source, false), false), 0, 0);
  };
  const auto expected = first(rows_text("x,c\n4,red\n"));
  EXPECT_EQ(first(rows_text("c;x\nred;4,0\n")), expected) << "other order, delimiter, decimal";
  EXPECT_EQ(first(rows_text("{\"x\": 4, \"c\": \"red\"}\n")), expected);
  EXPECT_EQ(first(rows_text("4,red\n")), expected) << "no header, no target";
  EXPECT_EQ(first(rows_text("4,red,0\n5,red,1\n")), expected) << "no header, with a target";
  EXPECT_EQ(first(rows_text("x,c,more\n4,red,8\n")), expected);
  TableEncoder::Remarks remarks;
  encoder->encode(encoder->read(rows_text("x,c\n,pink\n4,red\n"), false), false, &remarks);
  const auto told = remarks.sentences(2);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(says(told[0], "column 'x': 1 of 2 rows have no value"));
  EXPECT_TRUE(says(told[1], "'pink'"));
  EXPECT_TRUE(says(complaint_of([&] { encoder->read(rows_text("c\nred\n"), false); }), "there is no column x"));
  EXPECT_TRUE(says(complaint_of([&] { encoder->read(rows_text("x,c\nfour,red\n"), false); }),
                   "line 2, column 'x': expected a number, found 'four'"));
}

TEST(TableEncoder, ARowOnTheCommandLineIsSeparatedAsItsCellsTell) {
  const auto first = [](const TableEncoder& encoder, std::string_view row) {
    return values<float>(*encoder.encode(encoder.read_row(rows_text(row)), false), 0, 0);
  };
  const auto points = encoded("{\"z\": 1, \"a\": 10.5, \"y\": 0.5}\n{\"z\": 3, \"a\": 11, \"y\": 1.5}\n",
                              [] {
                                TableOptions o;
                                o.labels = {"y"};
                                return o;
                              }())
                          ->info()
                          .table;
  const auto expected = values<float>(*points->encode(points->read(rows_text("a,z\n12.5,2\n"), false), false), 0, 0);
  EXPECT_EQ(first(*points, "2,12.5\n"), expected) << "in the order of the training file";
  EXPECT_EQ(first(*points, "2;12,5\n"), expected);
  EXPECT_EQ(first(*points, "{\"a\": 12.5, \"z\": 2}\n"), expected);
  const auto commas =
      encoded("id;x;c;y\n1;1,5;red;0,5\n2;3,5;blue;1,5\n3;5,5;red;2,5\n4;7,5;red;3\n5;8,5;blue;4\n")->info().table;
  ASSERT_EQ(commas->features().size(), 2u) << "the id is left out";
  const auto three = values<float>(*commas->encode(commas->read(rows_text("x;c\n3,5;red\n"), false), false), 0, 0);
  EXPECT_EQ(first(*commas, "3,5;red\n"), three);
  EXPECT_EQ(first(*commas, "3.5;red\n"), three);
  EXPECT_NE(first(*commas, "3,red\n"), three);
  EXPECT_EQ(first(*commas, "9;3,5;red\n"), three);
  EXPECT_TRUE(
      says(complaint_of([&] { commas->read_row(rows_text("3,5,red\n")); }), "separate the cells with semicolons"));
  const TableEncoder again(commas->to_json(), "t");
  EXPECT_EQ(first(again, "3,5;red\n"), three);
  EXPECT_TRUE(says(complaint_of([&] { again.read_row(rows_text("3,5,red\n")); }), "semicolons"));
}

TEST(TableEncoder, AllBadCellsAreNamed) {
  const auto encoder = encoded("x,z,y\n1,2,0.5\n3,4,1.5\n5,7,2\n")->info().table;
  const std::string complaint = complaint_of([&] { encoder->read(rows_text("x,z\nfour,five\n1,2\n3,six\n"), false); });
  for (const char* part : {"line 2, column 'x': expected a number, found 'four'",
                           "line 2, column 'z': expected a number, found 'five'", "line 4, column 'z'"})
    EXPECT_TRUE(says(complaint, part));
  std::string many = "x,z\n";
  for (int i = 0; i < 100; ++i) many += "a,b\n";
  const std::string cut = complaint_of([&] { encoder->read(rows_text(many), false); });
  EXPECT_TRUE(says(cut, "and perhaps more"));
  EXPECT_LT(cut.size(), 2500u);
}

TEST(TableEncoder, DatesAndNamesAreNoClassesUnlessSomebodySaysSo) {
  const std::string dates = "x,day\n1,2024-01-01\n2,2024-01-02\n3,2024-01-02\n";
  EXPECT_TRUE(says(complaint_of([&] { file_of(dates); }), "has dates, which are neither a number nor classes"));
  TableOptions said;
  said.task = TableTask::classify;
  EXPECT_EQ(file_of(dates, said)->schema.class_names.size(), 2u);
  std::string names = "x,name\n";
  for (int i = 0; i < 30; ++i) names += fmt::format("{},house number {}\n", i % 7, i);
  EXPECT_TRUE(says(complaint_of([&] { file_of(names); }), "has text: 30 different values in 30 rows"));
  EXPECT_TRUE(says(complaint_of([&] { file_of(names); }), "--label"));
}

TEST(TableEncoder, ColumnsOfOneNameArePointedOut) {
  EXPECT_TRUE(says(fmt::format("{}", fmt::join(file_of("a,a,y\n1,2,0.5\n3,4,1.5\n")->schema.notes, "\n")),
                   "several columns are called 'a'"));
}

class TableKind : public testing::Test {
 protected:
  DatasetPtr open(const std::string& split, std::map<std::string, Option> items) {
    Options t;
    t.where = "data";
    t.items = std::move(items);
    t.items.try_emplace("kind", Option{std::string("table"), {}});
    return open_dataset(*disk, t, split, {});
  }
  static Option text(const std::string& v) { return {v, {}}; }
  test::TempDir dir;
  std::unique_ptr<Disk> disk = make_real_disk();
};

TEST_F(TableKind, PartsOfOneFileAreEncodedByTheTrainingPart) {
  std::string rows = "x;y\n";
  for (int i = 0; i < 100; ++i) rows += fmt::format("{},5;{}\n", i, i % 2 ? "a" : "b");
  test::write_bytes(dir.path("t.csv"), rows);
  const std::map<std::string, Option> keys{{"path", text(dir.path("t.csv"))}, {"holdout", Option{0.2, {}}}};
  const auto train = open("train", keys), held = open("test", keys);
  EXPECT_EQ(train->size(), 80u);
  EXPECT_EQ(held->size(), 20u);
  EXPECT_EQ(train->info().table->to_json(), held->info().table->to_json());
  double sum = 0;
  for (std::uint64_t i = 0; i < 80; ++i) sum += values<float>(*train, i, 0)[0];
  EXPECT_NEAR(sum, 0, 1e-4);
  EXPECT_TRUE(says(train->info().notes[0], "semicolons, decimal comma"));
}

TEST_F(TableKind, DirectoriesHaveAFileForEachPart) {
  test::write_bytes(dir.path("train.tsv"), "x\tc\ty\n1\tred\ta\n2\tblue\tb\n3\tred\ta\n");
  test::write_bytes(dir.path("test.tsv"), "x\tc\ty\n2\tblue\tb\n");
  const std::map<std::string, Option> keys{{"path", text(dir.path())}};
  const auto train = open("train", keys), held = open("test", keys);
  EXPECT_EQ(held->fields(), train->fields());
  EXPECT_EQ(values<float>(*held, 0, 0), values<float>(*train, 1, 0));
  EXPECT_EQ(values<std::int32_t>(*held, 0, 1)[0], 1);
  test::write_bytes(dir.path("test.tsv"), "x\tc\ty\n2\tblue\tz\n");
  EXPECT_TRUE(says(complaint_of([&] { open("test", keys); }), "has classes that"));
}

TEST_F(TableKind, AnEncoderThatWasStoredIsUsedInsteadOfAnother) {
  test::write_bytes(dir.path("old.csv"), "x,c,y\n1,red,a\n2,blue,b\n3,red,a\n");
  test::write_bytes(dir.path("new.csv"), "c,x,y\ngreen,100,b\nred,3,b\n");
  const auto old = open("train", {{"path", text(dir.path("old.csv"))}});
  test::write_bytes(dir.path("table.json"), old->info().table->to_json().dump());
  const std::map<std::string, Option> keys{{"path", text(dir.path("new.csv"))},
                                           {"encoder", text(dir.path("table.json"))}};
  const auto fresh = open("train", keys);
  EXPECT_EQ(fresh->fields(), old->fields());
  EXPECT_EQ(fresh->info().table->to_json(), old->info().table->to_json());
  EXPECT_EQ(values<float>(*fresh, 1, 0), values<float>(*old, 2, 0));
  EXPECT_EQ(fresh->info().class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values<std::int32_t>(*fresh, 1, 1)[0], 1);
  test::write_bytes(dir.path("new.csv"), "c,x,y\ngreen,100,z\n");
  EXPECT_TRUE(says(complaint_of([&] { open("train", keys); }), "has classes that the encoder does not: z"));
  test::write_bytes(dir.path("table.json"), "{}");
  EXPECT_TRUE(says(complaint_of([&] { open("train", keys); }), "table.json: this is no encoder of a table"));
}

TEST_F(TableKind, ByTimeTheLatestRowsTestWhereverTheyStandInTheFile) {
  std::string rows = "sold,x,y\n";
  for (int i = 0; i < 20; ++i) rows += fmt::format("{}.3.2024,{},{}.5\n", 1 + i * 7 % 20, i, 1 + i * 7 % 20);
  test::write_bytes(dir.path("t.csv"), rows);
  const auto path = text(dir.path("t.csv"));
  for (const bool ignored : {false, true}) {
    std::map<std::string, Option> keys{{"path", path},
                                       {"time", text("sold")},
                                       {"validation", {0.1, {}}},
                                       {"test", {0.2, {}}},
                                       {"standardise_target", {false, {}}}};
    if (ignored) keys["ignore"] = {Option::List{text("sold")}, {}};
    const auto days = [&](const std::string& part) {
      const auto d = open(part, keys);
      std::vector<float> found;
      for (std::uint64_t i = 0; i < d->size(); ++i) found.push_back(values<float>(*d, i, d->fields().size() - 1)[0]);
      return found;
    };
    EXPECT_EQ(days("validation"), (std::vector<float>{15.5, 16.5}));
    EXPECT_EQ(days("test"), (std::vector<float>{17.5, 18.5, 19.5, 20.5}));
    EXPECT_EQ(days("train").size(), 14u);
    test::write_bytes(dir.path("encoder.json"), open("train", keys)->info().table->to_json().dump());
    keys["encoder"] = text(dir.path("encoder.json"));
    EXPECT_EQ(days("test"), (std::vector<float>{17.5, 18.5, 19.5, 20.5})) << "with the encoder of a run";
  }
  EXPECT_TRUE(says(complaint_of([&] {
                     open("train", {{"path", path}, {"time", text("sald")}, {"test", {0.2, {}}}});
                   }),
                   "did you mean 'sold'"));
  EXPECT_TRUE(says(complaint_of([&] {
                     open("train", {{"path", path}, {"time", text("sold")}, {"split", text("random")}});
                   }),
                   "leave out one of them"));
}

TEST_F(TableKind, KeysAreCheckedAllAtOnce) {
  const std::string complaint = complaint_of([&] {
    Options types;
    types.items["x"].value = std::string("numbr");
    open("train", {{"path", text("nowhere.csv")},
                   {"delimiter", text("ab")},
                   {"decimal", text("x")},
                   {"tsk", text("regress")},
                   {"types", Option{std::make_shared<Options>(types), {}}}});
  });
  EXPECT_TRUE(says(complaint, "data.delimiter must be one character"));
  EXPECT_TRUE(says(complaint, "data.decimal must be"));
  EXPECT_TRUE(says(complaint, "numbr"));
  EXPECT_TRUE(says(complaint, "did you mean 'task'"));
}

}  // namespace
}  // namespace echelon::data
