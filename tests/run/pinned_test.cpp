// What makes a shipped system itself. The table is tests/run/pins.txt: for every setting of every file what the system
// has with it, compared with itself without it or with another value in its place, on a simulated cluster; and the
// tests that look at the essential lines of its code. If nobody reads a setting any more, or the code behind it does
// nothing, both runs are alike and the row fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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

// Eight workers, of which one is slow, train a small network on links of 10 MB/s. A word changes some of that.
struct PinnedSetup {
  std::string hidden = "[24, 24, 24]", optim = "name = 'momentum'\nlr = 0.02\n";
  int epochs = 3;
  double latency = 1e-5, bandwidth = 1e7;
  int hosts = pinned_workers, shards = 0;

  explicit PinnedSetup(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (word == "hosts")
        hosts = 2;
      else if (word == "slow")
        bandwidth = 1e5;
      else if (word == "fast")
        bandwidth = 1e10;
      else if (word == "far")
        latency = 1e-3;
      else if (word == "long")
        epochs = 20;
      else if (word == "wide")
        hidden = "[512, 128]";
      else if (word == "parts")
        shards = 4 * pinned_workers;
      else if (word == "hot")
        optim = "name = 'momentum'\nlr = 0.5\n";
      else if (word == "plain")
        optim = "name = 'sgd'\nlr = 0.02\n";
      else
        fail("tests/run/pins.txt: no setup is called '{}'", word);
    }
  }
  std::string recipe() const {
    return fmt::format(
        "[model]\nname = 'mlp'\nhidden = {}\n[data]\nkind = 'synthetic'\nmake = 'blobs'\nshape = [48]\nclasses = 8\n"
        "samples = 512\n[optim]\n{}[train]\nepochs = {}\nbatch = 64\n{}evaluate = false\n",
        hidden, optim, epochs, shards > 0 ? fmt::format("shards = {}\n", shards) : "");
  }
  SimCluster cluster() const {
    SimCluster cluster = SimCluster::uniform(hosts, latency, bandwidth, 1e8);
    for (auto& machine : cluster.machines) machine.ranks = pinned_workers / hosts;
    return cluster;
  }
};

struct PinnedRun {
  std::string refused;         // why it does not train
  std::vector<float> weights;  // the model, and every worker's own
  double bytes = 0, messages = 0, seconds = 0, state = 0;
};

// Bytes that a rank has for updates: those of its worker and of what it has for others.
double state_of(Engine& engine) {
  auto* replica = dynamic_cast<Replica*>(&engine);
  if (!replica) return 0;
  double bytes = 0;
  for (const auto& states : {replica->trainer().state(), replica->exchange().state()})
    for (const StateSpan& s : states) bytes += static_cast<double>(s.bytes.size());
  return bytes;
}

PinnedRun trained_under(const std::string& system_text, const PinnedSetup& setup) {
  const auto disk = make_real_disk();
  const TempDir dir;
  const std::string recipe = dir.path("recipe.toml"), system = dir.path("pinned.toml");
  write_file_atomically(*disk, recipe, setup.recipe());
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
    std::vector<double> state(pinned_workers);
    // What is measured before the first step is another matter: counted is what follows a rank's first report.
    struct FromTheFirstStep : RunListener {
      explicit FromTheFirstStep(World& world) : world(world) {}
      void on_step(const StepEvent&) override {
        if (!before) before = *world.sent();
      }
      World& world;
      std::optional<TrafficCount> before;
    };
    const auto program = [&](World& world) {
      const auto meter = make_metered(world);
      Cores cores(1);
      Team team(*meter, cores, job.composition != nullptr);
      Training training(job, *disk, world.clock(), team, "", 1);
      const double begin = world.now();
      FromTheFirstStep from(*meter);
      training.add(from);
      training.run(false);
      const auto rank = static_cast<std::size_t>(world.rank());
      if (rank == 0) seen.seconds = world.now() - begin;
      sent[rank] = *meter->sent();
      if (from.before) sent[rank].messages -= from.before->messages, sent[rank].bytes -= from.before->bytes;
      Engine& engine = training.engine();
      state[rank] = state_of(engine);
      own[rank].assign(engine.model().begin(), engine.model().end());
      if (auto* replica = dynamic_cast<Replica*>(&engine))
        own[rank].insert(own[rank].end(), replica->trainer().parameters().begin(),
                         replica->trainer().parameters().end());
    };
    if (shares) {
      run_in_threads(pinned_workers, {}, program);
      seen.seconds = 0;  // not those of a simulation
    } else {
      run_in_simulation(setup.cluster(), {}, program).throw_if_failed();
    }
    for (const auto& weights : own) seen.weights.insert(seen.weights.end(), weights.begin(), weights.end());
    for (const TrafficCount& count : sent)
      seen.bytes += static_cast<double>(count.bytes), seen.messages += static_cast<double>(count.messages);
    for (const double bytes : state) seen.state += bytes;
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

// The system without a setting, or with another value in its place. Without the name of a part, with the usual part.
void change_setting(Options& tree, const std::string& name, const std::string& other) {
  const std::size_t dot = name.find('.');
  if (const std::string axis = name.substr(0, dot); dot != std::string::npos && name == axis + ".name") {
    const std::string usual = axis == "rule" ? "grad_mean" : axis == "exchange" ? "all_reduce" : "";
    const std::string part = other.empty() ? usual : other;
    tree.items.erase(axis);
    if (!part.empty())
      tree.items[axis] = {std::make_shared<Options>(parse_toml(fmt::format("name = '{}'", part), name))};
    return;
  }
  if (dot == std::string::npos) {
    tree.items.erase(name);
    if (!other.empty()) tree.items[name] = parse_toml(fmt::format("{} = {}", name, other), name).items.at(name);
    return;
  }
  auto& nested = std::get<Option::Table>(tree.items.at(name.substr(0, dot)).value);
  nested = std::make_shared<Options>(*nested);
  change_setting(*nested, name.substr(dot + 1), other);
}

bool other_weights(const PinnedRun& a, const PinnedRun& b) {
  return a.weights.size() != b.weights.size() || !std::ranges::equal(a.weights, b.weights);
}

bool shows(const std::string& effect, const PinnedRun& with, const PinnedRun& without) {
  if (effect == "?") return false;  // asks what there is to say
  if (effect == "needed") return !without.refused.empty();
  if (!without.refused.empty()) return false;
  const auto less = [](double a, double b) { return a < 0.98 * b; };
  if (effect == "fewer_bytes") return less(with.bytes, without.bytes);
  if (effect == "more_bytes") return less(without.bytes, with.bytes);
  if (effect == "fewer_messages") return less(with.messages, without.messages);
  if (effect == "more_messages") return less(without.messages, with.messages);
  if (effect == "less_state") return less(with.state, without.state);
  if (effect == "more_state") return less(without.state, with.state);
  if (effect == "sooner") return less(with.seconds, without.seconds);
  if (effect == "later") return less(without.seconds, with.seconds);
  if (effect == "weights") return other_weights(with, without);
  fail("tests/run/pins.txt: '{}' says nothing", effect);
}

std::string in_words(const PinnedRun& with, const PinnedRun& without) {
  if (!without.refused.empty()) return "needed: " + without.refused;
  return fmt::format("{}bytes x{:.4g}, messages x{:.4g}, seconds x{:.4g}, state x{:.4g} with it",
                     other_weights(with, without) ? "other weights, " : "the same weights, ",
                     with.bytes / without.bytes, with.messages / without.messages, with.seconds / without.seconds,
                     with.state / without.state);
}

class Pinned : public testing::TestWithParam<std::string> {};

TEST_P(Pinned, HasWhatItsSettingsAreFor) {
  const std::string name = GetParam();
  const auto all = pinned();
  ASSERT_TRUE(all.contains(name)) << name << " has no row in tests/run/pins.txt";
  const auto disk = make_real_disk();
  const Options tree = parse_toml(read_text(*disk, find_system(*disk, name, shipped), 1 << 20), name);
  std::vector<std::string> settings;
  for (const char* axis : {"rule", "exchange", "when", "sync", "codec", "order", "local"})
    if (const auto table = tree.items.find(axis); table != tree.items.end())
      settings_of(*std::get<Option::Table>(table->second.value), std::string(axis) + ".", settings);

  std::map<std::vector<std::string>, PinnedRun> as_shipped;
  const auto compare = [&](const Pin& pin, const auto& look) {
    const PinnedSetup setup(pin.setup);
    if (!as_shipped.contains(pin.setup)) as_shipped[pin.setup] = trained_under(write_toml(tree), setup);
    const PinnedRun& with = as_shipped[pin.setup];
    ASSERT_EQ(with.refused, "");
    Options changed = tree;
    change_setting(changed, pin.setting, pin.other);
    look(with, trained_under(write_toml(changed), setup));
  };
  for (const Pin& pin : all.at(name).pins) {
    if (std::ranges::find(settings, pin.setting) == settings.end())
      ADD_FAILURE() << name << ": " << pin.setting << " is pinned, but not in its file";
    else if (pin.test.empty())
      compare(pin, [&](const PinnedRun& with, const PinnedRun& without) {
        for (const std::string& effect : pin.effects)
          EXPECT_TRUE(shows(effect, with, without))
              << name << ": " << pin.setting << " is pinned as " << effect << "; " << in_words(with, without);
      });
  }
  for (const std::string& setting : settings)
    if (std::ranges::none_of(all.at(name).pins, [&](const Pin& pin) { return pin.setting == setting; }))
      compare({.setting = setting}, [&](const PinnedRun& with, const PinnedRun& without) {
        ADD_FAILURE() << name << ": nothing pins " << setting << "; " << in_words(with, without);
      });
}

INSTANTIATE_TEST_SUITE_P(Shipped, Pinned, testing::ValuesIn(system_names(*make_real_disk(), shipped)),
                         [](const auto& info) { return info.param; });

TEST(Pins, NameTestsThatExist) {
  const auto tests = known_tests();
  for (const auto& [name, pins] : pinned()) {
    EXPECT_FALSE(pins.tests.empty()) << name << ": which test looks at the essential line of its code?";
    for (const std::string& test : pins.tests) EXPECT_TRUE(tests.contains(test)) << name << ": there is no " << test;
    for (const Pin& pin : pins.pins)
      EXPECT_TRUE(pin.test.empty() || tests.contains(pin.test)) << name << ": there is no " << pin.test;
  }
}

TEST(Pins, AreOfFilesThatExist) {
  const auto disk = make_real_disk();
  for (const auto& [name, pins] : pinned()) {
    const bool plan = name.starts_with("plan:");
    const std::string file = plan ? "recipes/plans/" + name.substr(5) + ".toml" : "recipes/systems/" + name + ".toml";
    EXPECT_TRUE(disk->exists(source_path(file))) << "there is no " << file;
  }
}

}  // namespace
}  // namespace echelon
