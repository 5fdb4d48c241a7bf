#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/temp_dir.h"
#include "track/trace.h"
#include "web/downsample.h"
#include "web/prometheus.h"
#include "web/series_store.h"
#include "web/trace_store.h"

namespace echelon::web {
namespace {

TEST(Downsample, KeepsEverySpikeOfManyPoints) {
  std::vector<double> x, y;
  for (int i = 0; i < 100'000; ++i) x.push_back(i), y.push_back(std::sin(i * 1e-3));
  y[77'777] = 50, y[12'345] = -50;
  const Curve few = downsample(x, y, -1e300, 1e300, 500);
  EXPECT_LE(few.x.size(), 500u);
  EXPECT_GT(few.x.size(), 300u);
  EXPECT_EQ(few.points, 100'000u);
  EXPECT_TRUE(std::ranges::is_sorted(few.x));
  EXPECT_EQ(std::ranges::max(few.y), 50);
  EXPECT_EQ(std::ranges::min(few.y), -50);
  for (std::size_t i = 0; i < few.x.size(); ++i) EXPECT_EQ(few.y[i], y[static_cast<std::size_t>(few.x[i])]);
}

TEST(Downsample, IsExactWhereThereAreFew) {
  std::vector<double> x, y;
  for (int i = 0; i < 10'000; ++i) x.push_back(i), y.push_back(i % 7);
  const Curve zoomed = downsample(x, y, 100, 300, 500);
  EXPECT_EQ(zoomed.x.size(), 201u);
  EXPECT_EQ(zoomed.x.front(), 100);
  EXPECT_EQ(zoomed.x.back(), 300);
}

TEST(Downsample, LeavesOutWhatIsNotFiniteAndStandsStill) {
  EXPECT_EQ(downsample(std::vector<double>{1, 2, 3}, std::vector<double>{1, NAN, INFINITY}, 0, 9, 100).x,
            std::vector<double>{1});
  EXPECT_TRUE(downsample({}, {}, 0, 1, 4).x.empty());
  const std::vector<double> same(1000, 5.0);  // all at one x
  EXPECT_LE(downsample(same, same, 0, 9, 4).x.size(), 4u);
}

TEST(SeriesStore, ReadsOnWhereALiveRunHasWritten) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const RunFolder run = create_run(*disk, dir.path(), "demo", "");
  SeriesStore store(*disk);
  EXPECT_TRUE(store.columns(run).step.empty());
  const auto add = [&](const std::string& text) {
    disk->append_to(run.metrics())->append(std::as_bytes(std::span(text)));
  };
  add(to_jsonl({.step = 1, .epoch = 0.1, .time = 5, .values = {{"train_loss", 2.0}}}));
  EXPECT_EQ(store.columns(run).step, std::vector<double>{1});
  const std::string second =
      to_jsonl({.step = 2, .epoch = 0.2, .time = 6, .values = {{"train_loss", 1.5}, {"test_loss", 1.7}}});
  add(second.substr(0, 20));  // not a whole line yet
  EXPECT_EQ(store.columns(run).step.size(), 1u);
  add(second.substr(20));
  EXPECT_EQ(store.columns(run).step, (std::vector<double>{1, 2}));
  EXPECT_TRUE(std::isnan(store.columns(run).column("test_loss")[0]));
  EXPECT_EQ(store.columns(run).column("test_loss")[1], 1.7);
  add("garbage\n");
  EXPECT_EQ(store.columns(run).step.size(), 2u);
  cut_metrics(*disk, run.metrics(), 1);  // a resumed run
  EXPECT_EQ(store.columns(run).step, std::vector<double>{1});
  EXPECT_EQ(store.columns(run).column("train_loss"), std::vector<double>{2.0});
}

TEST(SeriesStore, ForgetsWhatWasNotAskedForLongest) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  SeriesStore store(*disk, 1000);
  for (int r = 0; r < 20; ++r) {
    const RunFolder run = create_run(*disk, dir.path(), "demo", "");
    std::string text;
    for (int i = 0; i < 50; ++i)
      text += to_jsonl({.step = i, .epoch = 0, .time = 0, .values = {{"train_loss", 1.0 * i}}});
    write_file_atomically(*disk, run.metrics(), text);
    EXPECT_EQ(store.columns(run).step.size(), 50u);
    EXPECT_LE(store.numbers(), 1000u);
  }
  EXPECT_EQ(store.columns({dir.path("demo-1")}).step.size(), 50u);
}

TEST(TraceStore, ShowsWhatTheTraceWriterWrote) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  Trace trace(10.0);
  const auto step = trace.name("step"), run = trace.name("run"), conv = trace.name("conv1 \"conv2d\""),
             forward = trace.name("forward");
  trace.timeline(0, 0, "training").add(step, run, 10.0, 12.0);
  trace.timeline(1, 1).add(conv, forward, 10.5, 10.75);
  for (int i = 0; i < 1000; ++i) trace.timeline(1, 1).add(conv, forward, 11 + i * 1e-4, 11 + i * 1e-4 + 5e-5);
  trace.write(*disk, dir.path("trace.json"));
  TraceStore store(*disk);
  const ReadTrace& read = store.trace(dir.path("trace.json"));
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[0].label, "training");
  EXPECT_DOUBLE_EQ(read.end, 2.0);
  EXPECT_EQ(read.rows[1].bars.size(), 1001u);
  const Json all = trace_window(read, 0, 2, 100);
  EXPECT_LT(all["rows"][1]["bars"].size(), 20u);  // put together: they are thinner than a dot
  EXPECT_EQ(all["rows"][1]["bars"][0][0], 0.5);
  const Json near = trace_window(read, 1.0, 1.01, 1000);
  EXPECT_GT(near["rows"][1]["bars"].size(), 90u);
  const Json totals = trace_totals(read);
  EXPECT_EQ(totals[0]["name"], "step");
  EXPECT_EQ(totals[1]["name"], "conv1 \"conv2d\"");
  EXPECT_EQ(totals[1]["count"], 1001);
}

TEST(TraceStore, HasTheMessagesInTheOrderInWhichTheyWereSent) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  Trace trace(0);
  const auto name = trace.name("all-reduce to rank 1"), message = trace.name("message"), to = trace.name("to"),
             bytes = trace.name("bytes");
  for (int i = 0; i < 10; ++i)
    trace.timeline(i % 2, 1 << 20, "messages").add(name, message, i, i, {{to, 1.0 - i % 2}, {bytes, 100.0 * i}});
  trace.write(*disk, dir.path("trace.json"));
  TraceStore store(*disk);
  const ReadTrace& read = store.trace(dir.path("trace.json"));
  const Json some = trace_messages(read, 3, 4);
  EXPECT_EQ(some["all"], 10);
  EXPECT_EQ(some["first"], 0);
  EXPECT_EQ(some["last"], 9);
  ASSERT_EQ(some["messages"].size(), 4u);
  EXPECT_EQ(some["messages"][0], Json({3.0, 1, 0, 300.0, 0}));
  EXPECT_EQ(some["messages"][3], Json({6.0, 0, 1, 600.0, 0}));
  EXPECT_EQ(some["names"][0], "all-reduce to rank 1");
  EXPECT_TRUE(trace_totals(read).empty());  // they take no time
  EXPECT_TRUE(trace_messages(read, 10, 4)["messages"].empty());
}

TEST(Prometheus, NamesAndLabelsAreOfItsForm) {
  EXPECT_EQ(prometheus_name("test accuracy/x"), "echelon_test_accuracy_x");
  EXPECT_EQ(prometheus_label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
}

}  // namespace
}  // namespace echelon::web
