#include "track/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "track/event_file.h"

namespace echelon {
namespace {

MetricPoint point(std::int64_t step) {
  return {step,
          static_cast<double>(step) / 100,
          1.7e9 + static_cast<double>(step) / 8,
          {{"train_loss", 1.0 / static_cast<double>(step + 1)}, {"samples_per_s", 1e4}}};
}

std::vector<std::int64_t> steps_in(Disk& disk, const std::string& path) {
  std::vector<std::int64_t> steps;
  for (const auto& p : read_metrics(disk, path).points) steps.push_back(p.step);
  return steps;
}

std::vector<std::int64_t> up_to(std::int64_t n) {
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 1; i <= n; ++i) steps.push_back(i);
  return steps;
}

Json events_in(const std::string& directory) {
  return parse_json(test::output_of("/usr/bin/python3 " + source_path("tests/track/read_events.py") + " " + directory),
                    "py");
}

std::vector<MetricsWriter::Output> outputs(auto&&... output) {
  std::vector<MetricsWriter::Output> list;
  (list.push_back(std::move(output)), ...);
  return list;
}

TEST(Metrics, ALineIsJsonAndComesBack) {
  MetricPoint p{
      7, 0.25, 1700000000.125, {{"loss", 0.1f}, {"quote\"", std::nan("")}, {"up", INFINITY}, {"down", -INFINITY}}};
  const std::string line = to_jsonl(p);
  EXPECT_EQ(line.back(), '\n');
  const Json json = parse_json(line, "line");
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["loss"].get<double>(), 0.1f);
  EXPECT_EQ(json["up"], "inf");
  const auto back = parse_metric(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 7);
  EXPECT_EQ(back->epoch, 0.25);
  EXPECT_EQ(back->time, 1700000000.125);
  EXPECT_EQ(*back->find("loss"), 0.1f);
  EXPECT_TRUE(std::isnan(*back->find("quote\"")));
  EXPECT_EQ(*back->find("down"), -INFINITY);
  EXPECT_EQ(back->find("absent"), nullptr);
}

TEST(Metrics, RecordedPointsAreInBothFiles) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  {
    MetricsWriter writer(make_background("metrics", 4), outputs(jsonl_output(*disk, dir.path("m.jsonl")),
                                                                event_output(*disk, dir.path("tb"), 1.7e9, {})));
    for (int step = 1; step <= 300; ++step) writer.record(point(step));
  }
  EXPECT_EQ(steps_in(*disk, dir.path("m.jsonl")), up_to(300));
  const Json events = events_in(dir.path("tb"));
  ASSERT_EQ(events.size(), 600u);
  for (int i = 0; i < 300; ++i) {
    const MetricPoint p = point(i + 1);
    EXPECT_EQ(events[2 * i][0], i + 1);
    EXPECT_EQ(events[2 * i][1].get<double>(), p.time);
    EXPECT_EQ(events[2 * i][2], "train_loss");
    EXPECT_EQ(events[2 * i][3].get<float>(), static_cast<float>(p.values[0].second));
    EXPECT_EQ(events[2 * i + 1][2], "samples_per_s");
  }
}

TEST(Metrics, EventFilesAreNamedAsTensorBoardExpects) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  event_output(*disk, dir.path("tb"), 1234567890.5, {});
  const auto names = disk->list(dir.path("tb"));
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names[0].starts_with("events.out.tfevents.1234567890.")) << names[0];
}

TEST(Metrics, ATornLastLineIsForgottenAndTheRestIsThere) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  std::string text;
  for (int step = 1; step <= 3; ++step) text += to_jsonl(point(step));
  const std::size_t two = to_jsonl(point(1)).size() + to_jsonl(point(2)).size();
  for (std::size_t n = two; n < text.size(); ++n) {
    write_file_atomically(*disk, dir.path("m"), std::string_view(text).substr(0, n));
    const MetricsFile found = read_metrics(*disk, dir.path("m"));
    EXPECT_EQ(found.points.size(), 2u);
    EXPECT_EQ(found.damaged, n == two ? 0 : 1);
    const MetricsFile cut = cut_metrics(*disk, dir.path("m"), 100);
    EXPECT_EQ(cut.points.size(), 2u);
    EXPECT_EQ(cut.damaged, n == two ? 0 : 1);
    EXPECT_EQ(read_text(*disk, dir.path("m")), text.substr(0, two));
  }
}

TEST(Metrics, DamagedLinesDoNotHideTheOthers) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_file_atomically(*disk, dir.path("m"),
                        to_jsonl(point(1)) + "garbage\n{\"no\":1}\n{\"step\":\"2\"}\n[1]\n\n" + to_jsonl(point(2)) +
                            std::string(3 << 20, 'x') + "\n" + to_jsonl(point(3)));
  EXPECT_EQ(steps_in(*disk, dir.path("m")), up_to(3));
  EXPECT_EQ(read_metrics(*disk, dir.path("m")).damaged, 5);
  EXPECT_TRUE(read_metrics(*disk, dir.path("absent")).points.empty());
}

// A run that went on to step 25 after its checkpoint of step 20, was killed, and goes on from 20 to 40.
TEST(Metrics, AfterAResumeEveryStepIsThereOnce) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto run = [&](std::int64_t from, std::int64_t to, double time) {
    const auto kept = cut_metrics(*disk, dir.path("m.jsonl"), from).points;
    MetricsWriter writer(make_background("metrics", 4), outputs(jsonl_output(*disk, dir.path("m.jsonl")),
                                                                event_output(*disk, dir.path("tb"), time, kept)));
    for (auto step = from + 1; step <= to; ++step) writer.record(point(step));
  };
  run(0, 25, 1.7e9);
  run(20, 40, 1.7e9 + 60);
  EXPECT_EQ(steps_in(*disk, dir.path("m.jsonl")), up_to(40));
  std::vector<std::int64_t> steps;
  for (const auto& e : events_in(dir.path("tb")))
    if (e[2] == "train_loss") steps.push_back(e[0].get<std::int64_t>());
  EXPECT_EQ(steps, up_to(40));
}

TEST(Metrics, ADiskThatRefusesForAWhileLosesAndDoublesNothing) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  for (const auto fault : {test::Fault::full, test::Fault::torn}) {
    for (std::size_t call = 0; call < 12; ++call) {
      real->remove_all(dir.path("m"));
      real->remove_all(dir.path("tb"));
      test::FaultyDisk disk(*real);
      auto events = event_output(disk, dir.path("tb"), 1.7e9, {});
      disk.fail_at(call, fault);
      int warnings = 0;
      {
        MetricsWriter writer(make_inline_background(), outputs(jsonl_output(disk, dir.path("m")), std::move(events)));
        for (int step = 1; step <= 5; ++step) {
          writer.record(point(step));
          for (const auto& w : writer.warnings()) {
            EXPECT_TRUE(test::says(w, "training goes on"));
            ++warnings;
          }
        }
      }
      EXPECT_EQ(warnings, 1) << call;
      EXPECT_EQ(steps_in(*real, dir.path("m")), up_to(5)) << call;
      EXPECT_EQ(read_metrics(*real, dir.path("m")).damaged, 0);
      EXPECT_EQ(events_in(dir.path("tb")).size(), 10u) << call;
    }
  }
}

TEST(Metrics, RecordingNeverWaitsForTheDisk) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  std::promise<void> release;
  const auto released = release.get_future().share();
  auto slow = jsonl_output(*disk, dir.path("m"));
  slow.record = [&, released](const MetricPoint& p) { return released.wait(), to_jsonl(p); };
  MetricsWriter writer(make_background("metrics", 2), outputs(std::move(slow)));
  for (int step = 1; step <= 20'000; ++step) writer.record(point(step));  // returns though nothing is written
  const auto warnings = writer.warnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(test::says(warnings[0], "some metrics are lost"));
  const auto flushed = writer.flush();
  EXPECT_FALSE(is_done(flushed));
  release.set_value();
  flushed.wait();
  EXPECT_GE(steps_in(*disk, dir.path("m")).size(), 10'000u);
}

TEST(AppendLog, KeepsOnlySoMuch) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  test::FaultyDisk disk(*real);
  AppendLog log(disk, dir.path("l"), 10);
  disk.fail_at(0, test::Fault::dead);
  for (const char* record : {"aaaa\n", "bbbb\n", "cccc\n", "dddd\n"}) EXPECT_THROW(log.append(record), DiskError);
  EXPECT_EQ(log.dropped(), 2);
  disk.work();
  log.append("e\n");  // there is no room for it either, but it makes room
  log.append("f\n");
  EXPECT_EQ(read_text(*real, dir.path("l")), "aaaa\nbbbb\nf\n");
}

}  // namespace
}  // namespace echelon
