#include "track/trace.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

Json written(const Trace& trace) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  trace.write(*disk, dir.path("trace.json"));
  return parse_json(read_text(*disk, dir.path("trace.json"), 1u << 30), "trace");
}

TEST(Trace, HasARowForEveryCoreAndABarForEveryPiece) {
  Trace trace(100.0);
  const auto conv = trace.name("conv1 \"forward\""), wait = trace.name("wait"), op = trace.name("op"),
             bytes = trace.name("bytes"), step = trace.name("step");
  EXPECT_EQ(trace.name("op"), op);
  Trace::Timeline& first = trace.timeline(0, 0);
  trace.timeline(0, 1, "loader");
  trace.timeline(3, 0).add(wait, op, 100.5, 101.5);
  first.add(conv, op, 100.000001, 100.000251, {{bytes, 4096}, {step, 7}});
  first.add(conv, op, 100.001, 100.002, {{bytes, NAN}, {step, 1}, {step, 2}});  // more than there is room for: left out

  const Json json = written(trace);
  std::map<std::pair<int, int>, std::string> rows;
  std::vector<Json> bars;
  for (const Json& e : json["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "thread_name") rows[{e["pid"], e["tid"]}] = e["args"]["name"];
    if (e["ph"] == "X") bars.push_back(e);
  }
  EXPECT_EQ(rows,
            (std::map<std::pair<int, int>, std::string>{{{0, 0}, "core 0"}, {{0, 1}, "loader"}, {{3, 0}, "core 0"}}));
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0]["name"], "conv1 \"forward\"");
  EXPECT_EQ(bars[0]["cat"], "op");
  EXPECT_NEAR(bars[0]["ts"].get<double>(), 1, 1e-3);
  EXPECT_NEAR(bars[0]["dur"].get<double>(), 250, 1e-3);
  EXPECT_EQ(bars[0]["args"], (Json{{"bytes", 4096.0}, {"step", 7.0}}));
  EXPECT_TRUE(bars[1]["args"]["bytes"].is_null());
  EXPECT_EQ(bars[2]["pid"], 3);
  EXPECT_EQ(bars[2]["dur"], 1e6);
  EXPECT_EQ(json["otherData"]["dropped_events"], 0);
}

TEST(Trace, IsBoundedAndSaysWhatItLeftOut) {
  Trace trace(0, 10);
  const auto op = trace.name("op");
  Trace::Timeline& timeline = trace.timeline(0, 0);
  for (int i = 0; i < 25; ++i) timeline.add(op, op, i, i + 1);
  EXPECT_EQ(timeline.size(), 10u);
  EXPECT_EQ(timeline.dropped(), 15);
  const Json json = written(trace);
  EXPECT_EQ(json["otherData"]["dropped_events"], 15);
  EXPECT_EQ(json["traceEvents"].back()["name"], "15 more are not shown");
}

TEST(Trace, NothingIsAFileToo) { EXPECT_TRUE(written(Trace(0))["traceEvents"].empty()); }

TEST(Trace, IsReplacedAsAWhole) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  Trace trace(0);
  const auto op = trace.name("op");
  for (int i = 0; i < 20'000; ++i) trace.timeline(0, 0).add(op, op, i, i + 1);
  trace.write(*real, dir.path("t"));
  const std::string before = read_text(*real, dir.path("t"));
  EXPECT_GT(before.size(), 1u << 20);  // more than one piece
  test::FaultyDisk disk(*real);
  for (std::size_t call = 0; call < 4; ++call) {
    disk.fail_at(call, test::Fault::torn);
    EXPECT_THROW(trace.write(disk, dir.path("t")), DiskError);
    EXPECT_EQ(read_text(*real, dir.path("t")), before);
  }
}

}  // namespace
}  // namespace echelon
