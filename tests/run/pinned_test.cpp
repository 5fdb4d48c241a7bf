// Every setting of a shipped system does what it is there for. One row a system: what is lost when a setting is
// left out of the file. Eight simulated workers, of which one is slow, train a small network twice, with and without
// it; if nobody reads a setting any more, or the code behind it does nothing, both runs are alike and the row fails.
// The table is tests/run/pins.txt; a new setting needs a word there, and the failure says what it changes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parallel/replica.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "tests/run/pins.h"
#include "tests/run/shipped.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

using namespace test;

constexpr int pinned_workers = 8;

constexpr const char* pinned_recipe =
    "[model]\nname = 'mlp'\nhidden = [24, 24, 24]\n[data]\nkind = 'synthetic'\nmake = 'blobs'\nshape = [48]\n"
    "classes = 8\nsamples = 512\n[optim]\nname = 'momentum'\nlr = 0.02\n"
    "[train]\nepochs = 3\nbatch = 64\nevaluate = false\n";

struct PinnedRun {
  std::string refused;         // why it does not train
  std::vector<float> weights;  // the model, and every worker's own
  double bytes = 0, messages = 0, seconds = 0;
};

PinnedRun trained_under(const std::string& system_text) {
  const auto disk = make_real_disk();
  const TempDir dir;
  const std::string recipe = dir.path("recipe.toml"), system = dir.path("pinned.toml");
  write_file_atomically(*disk, recipe, pinned_recipe);
  write_file_atomically(*disk, system, system_text);
  PinnedRun seen;
  try {
    Problems problems;
    const PreparedRun prepared =
        prepare_run(*disk, recipe, {}, problems, {.root = "nowhere", .share = {source_path("share")}}, system);
    problems.throw_if_any(recipe);
    TrainingJob job = make_job(prepared);
    job.stragglers = {{.rank = 2, .factor = 3, .chance = 1}};
    const bool shares = job.composition && job.composition->exchange->traits().shared_memory;
    check_system(job, pinned_workers, shares, recipe);
    std::vector<std::vector<float>> own(pinned_workers);
    std::vector<TrafficCount> sent(pinned_workers);
    const auto program = [&](World& world) {
      const auto meter = make_metered(world);
      Cores cores(1);
      Team team(*meter, cores, job.composition != nullptr);
      Training training(job, *disk, world.clock(), team, "", 1);
      const double begin = world.now();
      training.run(false);
      const auto rank = static_cast<std::size_t>(world.rank());
      if (rank == 0) seen.seconds = world.now() - begin;
      sent[rank] = *meter->sent();
      Engine& engine = training.engine();
      own[rank].assign(engine.model().begin(), engine.model().end());
      if (auto* replica = dynamic_cast<Replica*>(&engine))
        own[rank].insert(own[rank].end(), replica->trainer().parameters().begin(),
                         replica->trainer().parameters().end());
    };
    if (shares) {
      run_in_threads(pinned_workers, {}, program);
      seen.seconds = 0;  // not those of a simulation
    } else {
      run_in_simulation(SimCluster::uniform(pinned_workers, 1e-5, 1e7, 1e8), {}, program).throw_if_failed();
    }
    for (const auto& weights : own) seen.weights.insert(seen.weights.end(), weights.begin(), weights.end());
    for (const TrafficCount& count : sent)
      seen.bytes += static_cast<double>(count.bytes), seen.messages += static_cast<double>(count.messages);
  } catch (const Error& error) {
    seen.refused = error.what();
  }
  return seen;
}

// All settings of a system's tables: "rule.name", "local.optim.lr".
void settings_of(const Options& table, const std::string& before, std::vector<std::string>& names) {
  for (const auto& [key, option] : table.items) {
    if (const auto* nested = std::get_if<Option::Table>(&option.value))
      settings_of(**nested, before + key + ".", names);
    else
      names.push_back(before + key);
  }
}

// The system without a setting; without the name of a part, with the usual part in its place.
void erase_setting(Options& tree, const std::string& name) {
  for (const auto& [axis, usual] : {std::pair("rule", "grad_mean"), std::pair("exchange", "all_reduce")})
    if (name == std::string(axis) + ".name") {
      tree.items[axis] = {std::make_shared<Options>(parse_toml(fmt::format("name = '{}'", usual), name))};
      return;
    }
  if (name == "when.name" || name == "sync.name" || name == "codec.name" || name == "order.name") {
    tree.items.erase(name.substr(0, name.find('.')));
    return;
  }
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) {
    tree.items.erase(name);
    return;
  }
  auto& nested = std::get<Option::Table>(tree.items.at(name.substr(0, dot)).value);
  nested = std::make_shared<Options>(*nested);
  erase_setting(*nested, name.substr(dot + 1));
}

bool other_weights(const PinnedRun& a, const PinnedRun& b) {
  return a.weights.size() != b.weights.size() || !std::ranges::equal(a.weights, b.weights);
}

bool shows(const std::string& pin, const PinnedRun& with, const PinnedRun& without) {
  if (pin == "needed") return !without.refused.empty();
  if (!without.refused.empty()) return false;
  const auto less = [](double a, double b) { return a < 0.98 * b; };
  if (pin == "fewer_bytes") return less(with.bytes, without.bytes);
  if (pin == "more_bytes") return less(without.bytes, with.bytes);
  if (pin == "fewer_messages") return less(with.messages, without.messages);
  if (pin == "more_messages") return less(without.messages, with.messages);
  if (pin == "sooner") return less(with.seconds, without.seconds);
  if (pin == "later") return less(without.seconds, with.seconds);
  if (pin == "weights") return other_weights(with, without);
  if (pin == "races") return with.seconds == 0;
  if (pin == "unseen")
    return std::ranges::none_of(
        std::array{"fewer_bytes", "more_bytes", "fewer_messages", "more_messages", "sooner", "later", "weights"},
        [&](const char* other) { return shows(other, with, without); });
  return pin == "usual" && !other_weights(with, without) && with.bytes == without.bytes &&
         with.messages == without.messages && with.seconds == without.seconds;
}

std::string in_words(const PinnedRun& with, const PinnedRun& without) {
  if (!without.refused.empty()) return "needed: " + without.refused;
  return fmt::format("{}bytes x{:.4g}, messages x{:.4g}, seconds x{:.4g} with it",
                     other_weights(with, without) ? "other weights, " : "the same weights, ",
                     with.bytes / without.bytes, with.messages / without.messages, with.seconds / without.seconds);
}

std::vector<std::string> pinned_names() {
  std::vector<std::string> names;
  for (const auto& [name, pins] : pinned_systems()) names.push_back(name);
  return names;
}

class Pinned : public testing::TestWithParam<std::string> {};

TEST_P(Pinned, LosesWhatASettingIsForWithoutIt) {
  const std::string name = GetParam();
  const auto systems = pinned_systems();
  ASSERT_TRUE(systems.contains(name)) << name << " has no line in tests/run/pins.txt";
  Pins pins = systems.at(name);
  const auto disk = make_real_disk();
  const Options tree = parse_toml(read_text(*disk, find_system(*disk, name, shipped), 1 << 20), name);
  std::vector<std::string> settings;
  for (const char* axis : {"rule", "exchange", "when", "sync", "codec", "order", "local"})
    if (const auto table = tree.items.find(axis); table != tree.items.end())
      settings_of(*std::get<Option::Table>(table->second.value), std::string(axis) + ".", settings);
  const PinnedRun with = trained_under(write_toml(tree));
  ASSERT_EQ(with.refused, "");
  for (const std::string& setting : settings) {
    Options without = tree;
    erase_setting(without, setting);
    const PinnedRun lost = trained_under(write_toml(without));
    EXPECT_TRUE(pins.contains(setting)) << name << ": nothing pins " << setting << "; " << in_words(with, lost);
    EXPECT_TRUE(!pins.contains(setting) || shows(pins[setting], with, lost))
        << name << ": " << setting << " is pinned as " << pins[setting] << "; " << in_words(with, lost);
    pins.erase(setting);
  }
  for (const auto& [setting, pin] : pins) ADD_FAILURE() << name << ": " << setting << " is pinned, but not in its file";
}

INSTANTIATE_TEST_SUITE_P(Shipped, Pinned, testing::ValuesIn(pinned_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
