#include "recipe/system_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/axes.h"
#include "recipe/toml.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

const SystemPlaces shipped{source_path("recipes/systems")};

// A whole file, in which a test changes a line.
const std::string good_system = R"(title = "A title"
paper = "A paper"
section = "C"
about = "One. Two. Three."
worker = "loop: step"
use_when = "always"
avoid_when = "never"
[taxonomy]
parallelism = "data"
centralised = "central"
scheduling = "sync"
exchange = "all-reduce"
topology = "ring"
encoding = "float32"
[rule]
name = "elastic"
alpha = 0.1
[exchange]
name = "server"
[when]
tau = 5
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = good_system;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string system_problems(const std::string& text) {
  Problems problems;
  parse_system(text, "x.toml", problems);
  return problems.text("x.toml");
}

TEST(SystemFile, IsReadAsItSays) {
  Problems problems;
  const SystemFile s = parse_system(good_system, "some/where/x.toml", problems);
  EXPECT_TRUE(problems.empty()) << problems.text("?");
  EXPECT_EQ(s.name, "x");
  EXPECT_EQ(s.paper, "A paper");
  EXPECT_EQ(s.taxonomy.topology, "ring");
  EXPECT_EQ(write_toml(s.rule), "name = \"elastic\"\nalpha = 0.1\n");
  EXPECT_EQ(write_toml(s.exchange), "name = \"server\"\n");
  EXPECT_EQ(write_toml(s.when), "tau = 5\n");
  EXPECT_TRUE(s.sync.items.empty());
  EXPECT_EQ(chosen_part(composition_axis("sync"), s.sync).name, "bsp");
}

TEST(SystemFile, AllProblemsAtOnceWithLineAndCure) {
  const std::string said = system_problems(R"(title = "A title"
papr = "x"
about = 3
[taxonomy]
topolgy = "ring"
[rule]
name = "elastik"
[exchange]
name = "server"
tau = 5
[when]
tua = 5
[sync]
staleness = 3
[local]
optim = 3
schedule = 3
[with.optim]
name = "sgd"
)");
  for (const char* part : {
           "x.toml: paper is missing",
           "x.toml:2: unknown key papr; did you mean 'paper'?",
           "x.toml:3: about must be a text in quotes, is 3",
           "taxonomy.scheduling is missing",
           "x.toml:5: unknown key taxonomy.topolgy; did you mean 'topology'?",
           "x.toml:7: rule.name must be one of",
           "did you mean 'elastic'?",
           "x.toml:10: exchange.tau is now when.tau",
           "x.toml:12: unknown key when.tua; did you mean 'tau'?",
           "sync.name is missing: one of bsp",
           "x.toml:16: local.optim must be a table",
           "x.toml:17: unknown key local.schedule",
           "with is now local",
       })
    EXPECT_TRUE(says(said, part));
}

TEST(SystemFile, SaysInWhatItDeviatesOrNothing) {
  Problems problems;
  EXPECT_EQ(parse_system("deviates = 'no swapping'\n" + good_system, "x.toml", problems).deviates, "no swapping");
  EXPECT_TRUE(problems.empty()) << problems.text("?");
  EXPECT_TRUE(says(system_problems("deviates = '  '\n" + good_system), "x.toml:1: deviates is empty"));
  EXPECT_TRUE(says(system_problems("deviates = true\n" + good_system), "deviates must be a text"));
}

TEST(SystemFile, AnUnknownTableIsAnsweredWithAllThatAreKnown) {
  const std::string said = system_problems(good_system + "[somewhere_else]\nx = 1\n");
  for (const char* table : {"somewhere_else", "rule", "exchange", "when", "sync", "codec", "order"})
    EXPECT_TRUE(says(said, table));
}

TEST(SystemFile, SettingsOfOnePartMeanNothingInAnother) {
  EXPECT_EQ(system_problems(good_system), "");
  EXPECT_TRUE(says(system_problems(with("\"elastic\"", "\"param_mean\"")), "x.toml:17: unknown key rule.alpha"));
}

TEST(SystemFile, ItsSizeIsBounded) {
  EXPECT_TRUE(
      says(complaint_of([] { system_problems(good_system + "# " + std::string(most_system_bytes, 'x')); }), "x.toml"));
}

TEST(SystemFile, ATypoInANameIsAnsweredWithTheNearest) {
  const auto disk = make_real_disk();
  const auto complaint = [&](const std::string& name) {
    return complaint_of([&] { read_system(*disk, name, shipped); });
  };
  EXPECT_TRUE(says(complaint("eazgd"), "there is no system 'eazgd'; did you mean 'easgd'?"));
  EXPECT_TRUE(says(complaint("/nowhere/x.toml"), "/nowhere/x.toml: there is no such system file"));
  EXPECT_TRUE(says(complaint("../systems/easgd"), "there is no system"));  // a name is no path
  EXPECT_EQ(read_system(*disk, "easgd", shipped).name, "easgd");
  EXPECT_EQ(read_system(*disk, shipped[0] + "/easgd.toml", {}).name, "easgd");
}

TEST(SystemFile, EveryShippedOneIsFineAndSaysWhatItIs) {
  const auto disk = make_real_disk();
  const std::vector<std::string> names = system_names(*disk, shipped);
  EXPECT_GE(names.size(), 70u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const SystemFile s = read_system(*disk, name, shipped);
    EXPECT_TRUE(s.section.size() == 1 && s.section >= "A" && s.section <= "E") << s.section;
    EXPECT_TRUE(s.taxonomy.centralised == "central" || s.taxonomy.centralised == "decentral");
    const std::vector<std::string> kinds{"sync", "async", "bounded async", "soft-bounded async"};
    EXPECT_TRUE(std::ranges::count(kinds, s.taxonomy.scheduling)) << s.taxonomy.scheduling;
    EXPECT_GE(std::ranges::count(s.about, '.'), 3) << "three sentences: " << s.about;
    // Where there is somebody to push to, its program is written down.
    EXPECT_TRUE(chosen_part(composition_axis("exchange"), s.exchange).name != "server" || !s.server.empty());
  }
}

}  // namespace
}  // namespace echelon
