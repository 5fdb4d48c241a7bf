// What makes a published way to split a model itself: for every setting of every file in recipes/plans what its plan
// has with it, compared with itself without it or with another value in its place, for the file's own example. Nothing
// is trained: a plan is what tasks each rank runs, on which layers, with how many bytes (parallel/planned/plan_view.h).
// The table is tests/run/pins.txt.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "run/memory_limit.h"
#include "run/plan_file.h"
#include "run/run_plan.h"
#include "tests/run/pins.h"

namespace echelon {
namespace {

using namespace test;

struct PinnedPlan {
  std::string refused;
  PlanSpec plan = {};
  PlanView view = {};

  double sent() const {
    double all = 0;
    for (const double bytes : view.sent) all += bytes;
    return all;
  }
  std::size_t most_memory() const {
    std::size_t most = 0;
    for (const RankBytes& rank : view.ranks) most = std::max(most, rank.all());
    return most;
  }
  std::size_t in_files() const {
    std::size_t all = 0;
    for (const RankBytes& rank : view.ranks) all += rank.disk;
    return all;
  }
  std::string tasks() const {
    std::string text;
    for (const auto& rank : view.schedule.ranks) {
      for (const TaskTime& t : rank)
        text += fmt::format("{} {} {}, ", name_of(t.task.pass), t.task.stage, t.task.micro_batch);
      text += "\n";
    }
    return text;
  }
  std::string layers() const {
    std::string text;
    for (const StageView& s : view.stages)
      text += fmt::format("{}.{}: {}\n", s.stage, s.part, fmt::join(s.layers, " "));
    return text;
  }
};

// The plan for its example, as `echelon plan show` would have it.
PinnedPlan planned(const std::string& text, const std::string& name) {
  PinnedPlan seen;
  static const auto disk = make_real_disk();
  try {
    Problems problems;
    const PlanFile file = parse_plan(text, name, problems);
    problems.throw_if_any(name);
    std::istringstream words(file.example);
    std::string recipe, flag, value;
    int workers = 2;
    std::vector<std::string> overrides;
    for (words >> recipe; words >> flag >> value;)
      flag == "--workers" ? static_cast<void>(workers = std::stoi(value)) : overrides.push_back(value);
    const PreparedRun prepared = prepare_run(*disk, source_path(recipe), overrides, problems,
                                             {.root = "nowhere", .share = {source_path("share")}});
    problems.throw_if_any(recipe);
    seen.plan = check_run_plan(prepared, file.plan, workers, 0, problems);
    problems.throw_if_any(recipe);
    seen.view = view_run_plan(prepared, seen.plan);
  } catch (const Error& error) {
    seen.refused = error.what();
  }
  return seen;
}

bool plan_shows(const std::string& effect, const PinnedPlan& with, const PinnedPlan& without) {
  if (effect == "needed") return !without.refused.empty();
  if (!without.refused.empty() || effect == "?") return false;
  if (effect == "tasks") return with.tasks() != without.tasks();
  if (effect == "layers") return with.layers() != without.layers();
  if (effect == "fewer_bytes") return with.sent() < without.sent();
  if (effect == "more_bytes") return with.sent() > without.sent();
  if (effect == "less_memory") return with.most_memory() < without.most_memory();
  if (effect == "more_memory") return with.most_memory() > without.most_memory();
  if (effect == "less_idle") return with.view.schedule.bubble() < without.view.schedule.bubble() - 0.001;
  if (effect == "more_idle") return with.view.schedule.bubble() > without.view.schedule.bubble() + 0.001;
  if (effect == "files") return with.in_files() > without.in_files();
  if (effect == "own_result") return with.plan.has_own_result() && !without.plan.has_own_result();
  if (effect == "staleness") return with.plan.staleness(1) != without.plan.staleness(1);
  fail("tests/run/pins.txt: '{}' says nothing of a plan", effect);
}

std::string plan_in_words(const PinnedPlan& with, const PinnedPlan& without) {
  if (!without.refused.empty()) return "needed: " + without.refused;
  return fmt::format("{}{}bytes {} : {}, memory {} : {}, idle {:.3f} : {:.3f}, in files {} : {}, own result {} : {}",
                     with.tasks() != without.tasks() ? "other tasks, " : "",
                     with.layers() != without.layers() ? "other layers, " : "", with.sent(), without.sent(),
                     with.most_memory(), without.most_memory(), with.view.schedule.bubble(),
                     without.view.schedule.bubble(), with.in_files(), without.in_files(), with.plan.has_own_result(),
                     without.plan.has_own_result());
}

// "layer.1" is the second rule about layers.
void change_plan_setting(Options& tree, const std::string& name, const std::string& other) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) {
    tree.items.erase(name);
    if (!other.empty()) tree.items[name] = parse_toml(fmt::format("{} = {}", name, other), name).items.at(name);
    return;
  }
  auto& list = std::get<Option::List>(tree.items.at(name.substr(0, dot)).value);
  list.erase(list.begin() + std::stoi(name.substr(dot + 1)));
}

std::vector<std::string> settings_of_plan(const Options& tree) {
  static const std::set<std::string> texts{"title", "paper", "about", "program", "deviates", "example"};
  std::vector<std::string> settings;
  for (const auto& [key, option] : tree.items) {
    const auto* list = std::get_if<Option::List>(&option.value);
    if (texts.contains(key)) continue;
    if (key != "layer" || !list)
      settings.push_back(key);
    else
      for (std::size_t i = 0; i < list->size(); ++i) settings.push_back(fmt::format("layer.{}", i));
  }
  return settings;
}

std::vector<std::string> shipped_plans() {
  std::vector<std::string> names;
  for (const std::string& file : make_real_disk()->list(source_path("recipes/plans")))
    if (file.ends_with(".toml")) names.push_back(file.substr(0, file.size() - 5));
  return names;
}

class PinnedPlans : public testing::TestWithParam<std::string> {};

TEST_P(PinnedPlans, HaveWhatTheirSettingsAreFor) {
  const std::string name = "plan:" + GetParam();
  const auto all = pinned();
  ASSERT_TRUE(all.contains(name)) << name << " has no row in tests/run/pins.txt";
  const Options tree = parse_toml(read_text(*make_real_disk(), source_path("recipes/plans/" + GetParam() + ".toml")),
                                  GetParam() + ".toml");
  const std::vector<std::string> settings = settings_of_plan(tree);
  const PinnedPlan with = planned(write_toml(tree), GetParam());
  ASSERT_EQ(with.refused, "");
  const auto without = [&](const Pin& pin) {
    Options changed = tree;
    change_plan_setting(changed, pin.setting, pin.other);
    return planned(write_toml(changed), GetParam());
  };
  for (const Pin& pin : all.at(name).pins) {
    if (std::ranges::find(settings, pin.setting) == settings.end()) {
      ADD_FAILURE() << name << ": " << pin.setting << " is pinned, but not in its file";
      continue;
    }
    if (!pin.test.empty()) continue;
    const PinnedPlan other = without(pin);
    for (const std::string& effect : pin.effects)
      EXPECT_TRUE(plan_shows(effect, with, other))
          << name << ": " << pin.setting << " is pinned as " << effect << "; " << plan_in_words(with, other);
  }
  for (const std::string& setting : settings)
    EXPECT_TRUE(std::ranges::any_of(all.at(name).pins, [&](const Pin& pin) { return pin.setting == setting; }))
        << name << ": nothing pins " << setting << "; " << plan_in_words(with, without({.setting = setting}));
}

INSTANTIATE_TEST_SUITE_P(Shipped, PinnedPlans, testing::ValuesIn(shipped_plans()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
