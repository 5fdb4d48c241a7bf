#include "web/board_api.h"

#include <gtest/gtest.h>

#include "tests/support/hand_clock.h"
#include "tests/support/temp_dir.h"
#include "track/control.h"
#include "web/board_actions.h"
#include "web/page.h"
#include "world/os/folder_lock.h"

namespace echelon::web {
namespace {

class Board : public ::testing::Test {
 protected:
  Board() : disk(make_real_disk()), clock(make_real_clock()) {
    one = create_run(*disk, dir.path(), "demo", "title = \"<script>\"\n");
    std::string text;
    for (int i = 1; i <= 5000; ++i)
      text += to_jsonl(
          {.step = i,
           .epoch = i / 100.0,
           .time = 1000.0 + i,
           .values = {
               {"bytes", 10.0 * i}, {"seconds", 0.5 * i}, {"test_accuracy", i / 5000.0}, {"train_loss", 1.0 / i}}});
    write_file_atomically(*disk, one.metrics(), text);
    api = std::make_unique<BoardApi>(dir.path(), *clock, hooks());
  }
  BoardHooks hooks() {
    return {.read =
                [this](const RunFolder& folder, const std::string& name) {
                  RunRecord r{.name = name,
                              .stamp = "",
                              .values = {{"model", std::string("m")}},
                              .labels = read_labels(*disk, folder),
                              .checkpoints = {}};
                  r.values["state"] = std::string(is_folder_locked(folder.path) ? "running" : "end");
                  return r;
                },
            .graph =
                [](const RunFolder&) {
                  return Json{{"layers", Json::array()}};
                },
            .system = [](const RunFolder&) { return Json::object(); }};
  }
  Reply get(const std::string& path, std::multimap<std::string, std::string> values = {}) {
    return api->get(path, {std::move(values)});
  }
  Json json(const Reply& reply) { return Json::parse(reply.body); }
  test::TempDir dir;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<Clock> clock;
  RunFolder one;
  std::unique_ptr<BoardApi> api;
};

TEST_F(Board, ListsRunsAndAnswersQuestions) {
  EXPECT_EQ(json(get("/api/runs"))["runs"][0]["name"], "demo-1");
  EXPECT_EQ(json(get("/api/runs", {{"q", "model = x"}}))["runs"].size(), 0u);
  const Reply wrong = get("/api/runs", {{"q", "modle = x"}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.body.find("did you mean 'model'?"), std::string::npos);
}

TEST_F(Board, CurvesAreSmallAndExactWhenZoomed) {
  const Json all =
      json(get("/api/curves", {{"run", "demo-1"}, {"metric", "train_loss"}, {"points", "100"}}))["curves"][0];
  EXPECT_LE(all["x"].size(), 100u);
  EXPECT_EQ(all["points"], 5000);
  const Json zoomed = json(
      get("/api/curves",
          {{"run", "demo-1"}, {"metric", "train_loss"}, {"points", "100"}, {"from", "10"}, {"to", "20"}}))["curves"][0];
  EXPECT_EQ(zoomed["x"].size(), 11u);
  EXPECT_EQ(zoomed["y"][0], 0.1);
  const Json over_bytes =
      json(get("/api/curves", {{"run", "demo-1"}, {"metric", "train_loss"}, {"x", "bytes"}}))["curves"][0];
  EXPECT_EQ(over_bytes["x"][0], 10);
  const Json over_time =
      json(get("/api/curves", {{"run", "demo-1"}, {"metric", "train_loss"}, {"x", "time"}}))["curves"][0];
  EXPECT_EQ(over_time["x"][0], 0);
}

TEST_F(Board, SaysWhatItTookToReachATarget) {
  const Json reached =
      json(get("/api/reach", {{"run", "demo-1"}, {"metric", "test_accuracy"}, {"target", "0.5"}}))["runs"][0];
  EXPECT_EQ(reached["step"], 2500);
  EXPECT_EQ(reached["seconds"], 1250);
  EXPECT_EQ(reached["bytes"], 25000);
  EXPECT_FALSE(
      json(get("/api/reach", {{"run", "demo-1"}, {"metric", "test_accuracy"}, {"target", "2"}}))["runs"][0]["reached"]
          .get<bool>());
  EXPECT_EQ(
      json(get("/api/reach", {{"run", "demo-1"}, {"metric", "train_loss"}, {"target", "0.01"}}))["runs"][0]["step"],
      100);
}

TEST_F(Board, NothingOutsideTheRunsIsRead) {
  for (const char* name : {"..", "../demo-1", "/etc", "demo-1/..", "", ".trash", "demo-1/checkpoints"}) {
    EXPECT_EQ(get("/api/run", {{"name", name}}).status, 404) << name;
    EXPECT_EQ(get("/api/curves", {{"run", name}}).status, 404) << name;
    EXPECT_EQ(get("/api/trace", {{"run", name}}).status, 404) << name;
  }
  EXPECT_EQ(get("/api/nothing").status, 404);
  EXPECT_EQ(get("/../../etc/passwd").status, 404);
  EXPECT_EQ(get("/api/curves", {{"run", "demo-1"}, {"from", "nan"}}).status, 400);
  EXPECT_EQ(get("/api/curves", {{"run", "demo-1"}, {"points", "1e999"}}).status, 400);
  std::multimap<std::string, std::string> many;
  for (int i = 0; i < 1000; ++i) many.emplace("run", "demo-1");
  EXPECT_EQ(get("/api/curves", many).status, 400);
}

TEST_F(Board, LabelsAreChangedInTheFolderAndTheRegistry) {
  EXPECT_EQ(act(*api, "/api/label", R"({"run":"demo-1","add":["paper"],"star":true,"note":"n"})").status, 200);
  EXPECT_EQ(read_labels(*disk, one).tags, std::vector<std::string>{"paper"});
  EXPECT_EQ(json(get("/api/runs", {{"q", "tag = paper and star = true"}}))["runs"].size(), 1u);
  EXPECT_EQ(act(*api, "/api/label", R"({"run":"demo-1","remove":["paper"]})").status, 200);
  EXPECT_EQ(read_labels(*disk, one).note, "n");
  for (const char* bad : {"", "[]", "{}", R"({"run":7})", R"({"run":"demo-1","add":"x"})",
                          R"({"run":"demo-1","star":"yes"})", R"({"run":"../x"})", R"({"run":"demo-1","add":["a,b"]})"})
    EXPECT_EQ(act(*api, "/api/label", bad).status, 400) << bad;
  EXPECT_EQ(act(*api, "/api/other", R"({"run":"demo-1"})").status, 404);
}

TEST_F(Board, ARunInTheTrashIsGoneFromTheList) {
  EXPECT_EQ(act(*api, "/api/trash", R"({"run":"demo-1"})").status, 200);
  EXPECT_TRUE(disk->exists(dir.path(".trash/demo-1/recipe.toml")));
  EXPECT_EQ(json(get("/api/runs"))["runs"].size(), 0u);
}

TEST_F(Board, OnlyALiveRunIsAskedForSomething) {
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"pause"})").status, 400);
  const auto lock = lock_folder(one.path);
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"explode"})").status, 400);
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"rate","value":-1})").status, 400);
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"rate"})").status, 400);
  ControlReader reader(*disk, *clock, one);
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"rate","value":0.5})").status, 200);
  EXPECT_EQ(act(*api, "/api/control", R"({"run":"demo-1","action":"stop"})").status, 400);  // one at a time
  EXPECT_TRUE(reader.waiting());
  const auto request = reader.take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->action, "rate");
  EXPECT_EQ(request->value, 0.5);
  EXPECT_FALSE(reader.take());
}

TEST_F(Board, TellsWhatHasChangedSinceTheLastLook) {
  test::HandClock hand;
  BoardApi quick(dir.path(), hand, hooks());
  std::map<std::string, std::string> seen;
  EXPECT_EQ(quick.changes(seen)["runs"], Json::array({"demo-1"}));
  hand.pass(10);
  EXPECT_TRUE(quick.changes(seen)["runs"].empty());
  create_run(*disk, dir.path(), "demo", "");
  hand.pass(10);
  EXPECT_EQ(quick.changes(seen)["runs"], Json::array({"demo-2"}));
  disk->remove_all(one.path);
  hand.pass(10);
  EXPECT_EQ(quick.changes(seen)["runs"], Json::array({"demo-1"}));
}

TEST_F(Board, MetricsForPrometheusAreThoseOfLiveRuns) {
  EXPECT_EQ(get("/metrics").body.find("echelon_train_loss"), std::string::npos);
  const auto lock = lock_folder(one.path);
  BoardApi fresh(dir.path(), *clock, hooks());
  const Reply reply = fresh.get("/metrics", {});
  EXPECT_NE(reply.body.find("echelon_step{run=\"demo-1\",model=\"m\"} 5000\n"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find("echelon_runs{state=\"running\"} 1\n"), std::string::npos);
}

TEST(Page, HasItsFilesAndNoInlineScript) {
  ASSERT_TRUE(page_file("/"));
  const std::string_view html = page_file("/")->bytes;
  EXPECT_NE(html.find("main.js"), std::string_view::npos);
  EXPECT_EQ(html.find("<script>"), std::string_view::npos);
  EXPECT_EQ(html.find("onclick"), std::string_view::npos);
  EXPECT_EQ(html.find("http://"), std::string_view::npos);
  EXPECT_EQ(html.find("https://"), std::string_view::npos);
  ASSERT_TRUE(page_file("/uPlot.js"));
  EXPECT_GT(page_file("/uPlot.js")->bytes.size(), 50'000u);
  EXPECT_FALSE(page_file("/../index.html"));
}

}  // namespace
}  // namespace echelon::web
