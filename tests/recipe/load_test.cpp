#include "recipe/load.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/graph_file.h"
#include "recipe/recipe.h"
#include "recipe/toml.h"

namespace echelon {
namespace {

class Load : public ::testing::Test {
 public:
  Load()
      : dir_(::testing::TempDir() + "echelon_load_" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    disk_->remove_all(dir_);
    disk_->make_directories(dir_ + "/sub");
  }
  ~Load() override { disk_->remove_all(dir_); }

 protected:
  void write(const std::string& name, std::string_view text) { write_file_atomically(*disk_, dir_ + "/" + name, text); }
  LoadedOptions load(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return load_options(*disk_, dir_ + "/" + name, overrides, problems_);
  }

  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::string dir_;
  Problems problems_;
};

TEST_F(Load, AChainOfRecipesIsMergedKeyByKeyFromBesideEachFile) {
  write("base.toml", "[optim]\nname = 'adam'\nlr = 0.1\n[train]\nepochs = 1\nbatch = 64\nlist = [1, 2]");
  write("sub/middle.toml", "extends = '../base.toml'\n[train]\nepochs = 2\n");
  write("top.toml", "extends = 'sub/middle.toml'\n[train]\nlist = [3]\n[optim]\nbeta1 = 0.8\n");
  const LoadedOptions loaded = load("top.toml");
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
  EXPECT_EQ(write_toml(loaded.tree),
            "[optim]\nname = \"adam\"\nbeta1 = 0.8\nlr = 0.1\n\n[train]\nbatch = 64\nepochs = 2\nlist = [3]\n");
  EXPECT_EQ(loaded.files.size(), 3u);
  const Options& optim = *std::get<Option::Table>(loaded.tree.items.at("optim").value);
  EXPECT_TRUE(optim.items.at("lr").place.file.ends_with("base.toml"));
  EXPECT_EQ(optim.items.at("lr").place.line, 3);
  EXPECT_TRUE(optim.items.at("beta1").place.file.ends_with("top.toml"));
}

TEST_F(Load, ARecipeThatIsNoFileIsCompletedLikeOne) {
  write("base.toml", "[optim]\nname = 'adam'\nlr = 0.1\n");
  Options tree = parse_toml("extends = 'base.toml'\n[train]\nepochs = 2\n", "script");
  const LoadedOptions loaded = load_options(*disk_, tree, dir_ + "/script.toml", {"train.epochs=3"}, problems_);
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
  EXPECT_EQ(write_toml(loaded.tree), "[optim]\nname = \"adam\"\nlr = 0.1\n\n[train]\nepochs = 3\n");
}

TEST_F(Load, AnotherNameOrKindDropsTheKeysOfTheOld) {
  write("base.toml",
        "[optim]\nname = 'adam'\nbeta1 = 0.8\nlr = 0.1\n[data]\nkind = 'a'\nold = 1\n[train]\nname = 'x'\nkept = 1");
  write("top.toml", "extends = 'base.toml'\n[optim]\nname = 'sgd'\nlr = 0.2\n[data]\nkind = 'b'\n[train]\nname = 'y'");
  const LoadedOptions loaded = load("top.toml");
  EXPECT_EQ(write_toml(loaded.tree),
            "[data]\nkind = \"b\"\n\n[optim]\nname = \"sgd\"\nlr = 0.2\n\n[train]\nname = \"y\"\nkept = 1\n");
  ASSERT_EQ(loaded.notes.size(), 2u);
  EXPECT_NE(loaded.notes[1].find("dropped: beta1"), std::string::npos) << loaded.notes[1];
  const std::string overridden = write_toml(load("base.toml", {"optim.name=sgd", "optim.lr=3"}).tree);
  EXPECT_NE(overridden.find("[optim]\nname = \"sgd\"\nlr = 3\n"), std::string::npos) << overridden;
}

TEST_F(Load, ALengthInStepsStandsInForOneInEpochsAndTheOtherWayRound) {
  write("base.toml", "[train]\nepochs = 3\neval_every_steps = 5\nbatch = 4\n");
  const LoadedOptions loaded = load("base.toml", {"train.steps=100", "train.eval_every_epochs=1"});
  EXPECT_EQ(write_toml(loaded.tree), "[train]\nbatch = 4\neval_every_epochs = 1\nsteps = 100\n");
  EXPECT_EQ(loaded.notes.size(), 2u);
}

TEST_F(Load, DataAreLookedForBesideTheFileThatNamesThem) {
  write("sub/here.csv", "1,2");
  write("sub/base.toml", "[data]\nkind = 'csv'\npath = 'here.csv'");
  write("top.toml", "extends = 'sub/base.toml'");
  const auto path = [&](const LoadedOptions& loaded) {
    return std::get<std::string>(std::get<Option::Table>(loaded.tree.items.at("data").value)->items.at("path").value);
  };
  EXPECT_EQ(path(load("top.toml")), dir_ + "/sub/here.csv");
  write("sub/base.toml", "[data]\nkind = 'csv'\npath = 'elsewhere.csv'");
  EXPECT_EQ(path(load("top.toml")), "elsewhere.csv");
}

TEST_F(Load, OverridesAreTypedAndMayMakeNewTables) {
  write("r.toml", "[optim]\nlr = 0.1\nname = 'sgd'");
  const LoadedOptions loaded =
      load("r.toml", {"optim.lr=0.05", "model.hidden=[10, 20]", "model.name=mlp", "data.path=/a b/c.idx",
                      "train.flag=true", "train.epochs=1e1", "train.text=\"3\"", "schedule.growth.factor = 2"});
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
  EXPECT_EQ(
      write_toml(loaded.tree),
      "[data]\npath = \"/a b/c.idx\"\n\n[model]\nname = \"mlp\"\nhidden = [10, 20]\n\n[optim]\nname = \"sgd\"\nlr = "
      "0.05\n\n[schedule]\n\n[schedule.growth]\nfactor = 2\n\n[train]\nepochs = 10.0\nflag = true\ntext = "
      "\"3\"\n");
  const Options& optim = *std::get<Option::Table>(loaded.tree.items.at("optim").value);
  EXPECT_EQ(optim.items.at("lr").place.file, "--set optim.lr=0.05");
  EXPECT_EQ(optim.items.at("lr").place.line, 0);
  EXPECT_EQ(optim.place.line, 1);
}

TEST_F(Load, TheOrderOfOverridesDoesNotMatter) {
  write("r.toml", "[optim]\nname = 'sgd'\nlr = 0.1\nmomentum = 0.5\n[optim.rates]\nconv = 0.1");
  const std::string one = write_toml(load("r.toml", {"optim.name=adam", "optim.lr=0.3", "optim.rates.fc=2"}).tree);
  const std::string other = write_toml(load("r.toml", {"optim.rates.fc=2", "optim.lr=0.3", "optim.name=adam"}).tree);
  EXPECT_EQ(one, "[optim]\nname = \"adam\"\nlr = 0.3\n\n[optim.rates]\nfc = 2\n");
  EXPECT_EQ(other, one);
}

TEST_F(Load, MalformedOverridesAreAllReported) {
  write("r.toml", "a = 1");
  load("r.toml", {"nonsense", "=3", "a..b=3", "b=3\nc=4", "a b=3"});
  EXPECT_EQ(problems_.list().size(), 5u) << problems_.text("?");
}

TEST_F(Load, CirclesAndMissingFilesAreReported) {
  write("a.toml", "extends = 'b.toml'");
  write("b.toml", "extends = 'a.toml'");
  write("self.toml", "extends = 'self.toml'");
  write("lost.toml", "x = 1\n\nextends = 'nowhere.toml'");
  write("wrong.toml", "extends = 3");
  load("a.toml");
  ASSERT_EQ(problems_.list().size(), 1u);
  EXPECT_NE(problems_.list()[0].text.find("which extends this one"), std::string::npos);
  load("self.toml");
  load("lost.toml");
  load("wrong.toml");
  ASSERT_EQ(problems_.list().size(), 4u);
  EXPECT_EQ(problems_.list()[2].place.line, 3);
  EXPECT_THROW(load("absent.toml"), BadInput);
  for (int i = 0; i < 40; ++i) write(fmt::format("{}.toml", i), fmt::format("extends = 'sub/../{}.toml'", i + 1));
  load("0.toml");
  EXPECT_NE(problems_.list().back().text.find("chain"), std::string::npos) << problems_.list().back().text;
}

// A system: its tables lie below the recipe, what it needs over it, --set over both.
class LoadSystem : public Load {
 public:
  LoadSystem() {
    write("sub/one.toml", system("elastic", "[local.optim]\nname = 'nesterov'\n"));
    write("sub/two.toml", system("param_mean", ""));
  }

 protected:
  static std::string system(const std::string& rule, const std::string& more) {
    return "title='t'\npaper='p'\nabout='a'\nworker='w'\nuse_when='u'\navoid_when='v'\n"
           "[taxonomy]\nparallelism='data'\ncentralised='central'\nscheduling='sync'\nexchange='e'\ntopology='t'\n"
           "encoding='e'\n[rule]\nname='" +
           rule + "'\n[exchange]\nname='server'\nservers=2\n" + more + "[when]\ntau=5\n";
  }
  std::string tables(const std::string& recipe, const std::string& flag, std::vector<std::string> overrides = {}) {
    write("r.toml", recipe);
    loaded_ = load_options(*disk_, dir_ + "/r.toml", overrides, problems_, flag, {dir_ + "/sub"});
    return write_toml(loaded_.tree);
  }
  LoadedOptions loaded_;
  std::string loaded_text_;  // the recipe
};

TEST_F(LoadSystem, ItsTablesLieBelowTheRecipeAndWhatItNeedsAbove) {
  EXPECT_EQ(tables("[optim]\nname = 'momentum'\nmomentum = 0.5\nlr = 0.1\n[when]\ntau = 7\n", "one"),
            "system = \"one\"\n\n[exchange]\nname = \"server\"\nservers = 2\n\n"
            "[optim]\nname = \"nesterov\"\nlr = 0.1\n\n[rule]\nname = \"elastic\"\n\n[when]\ntau = 7\n");
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
  EXPECT_EQ(loaded_.files.size(), 2u);
}

TEST_F(LoadSystem, SetHasTheLastWordAndAnotherPartDropsTheOldOnesSettings) {
  const std::string text = tables("", "one", {"optim.name=adam", "exchange.name=random_peer", "when.tau=3"});
  EXPECT_EQ(text,
            "system = \"one\"\n\n[exchange]\nname = \"random_peer\"\n\n[optim]\nname = \"adam\"\n\n"
            "[rule]\nname = \"elastic\"\n\n[when]\ntau = 3\n");
}

TEST_F(LoadSystem, WhatAnOverrideExcludesOrLeavesWithoutMeaningIsDroppedAndNoted) {
  const auto table = [&](const char* name, const std::string& system, std::vector<std::string> overrides) {
    loaded_.notes.clear();
    tables("", system, std::move(overrides));
    return write_toml(*std::get<Option::Table>(loaded_.tree.items.at(name).value));
  };
  EXPECT_EQ(table("when", "one", {"when.probability=0.5"}), "probability = 0.5\n");
  ASSERT_EQ(loaded_.notes.size(), 1u);
  EXPECT_NE(loaded_.notes[0].find("when.probability is now 0.5, so when.tau = 5 of "), std::string::npos)
      << loaded_.notes[0];
  EXPECT_NE(table("when", "one", {"when.probability=1"}).find("tau = 5"), std::string::npos);
  // Who says both has the contradiction told, not one of them dropped.
  const std::string both = table("when", "one", {"when.tau=3", "when.probability=0.5"});
  EXPECT_NE(both.find("tau = 3"), std::string::npos) << both;

  write("sub/filtered.toml", system("grad_push", "filters = ['significant']\nthreshold = 0.01\nfanout = 2\n"));
  EXPECT_EQ(table("exchange", "filtered", {"exchange.filters=['skip']", "exchange.two_level=true"}),
            "name = \"server\"\nfilters = [\"skip\"]\nservers = 2\ntwo_level = true\n");
  EXPECT_EQ(loaded_.notes.size(), 2u);
  EXPECT_NE(table("exchange", "filtered", {"exchange.filters=['skip', 'significant']"}).find("threshold"),
            std::string::npos);
  EXPECT_NE(table("exchange", "filtered", {"exchange.two_level=false"}).find("fanout = 2"), std::string::npos);
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
}

TEST_F(LoadSystem, AGraphsFileBecomesAPartOfTheRecipe) {
  const auto exchange = [&](std::vector<std::string> overrides) {
    loaded_.notes.clear();
    tables(loaded_text_, "", std::move(overrides));
    return write_toml(*std::get<Option::Table>(loaded_.tree.items.at("exchange").value));
  };
  write("my.edges", "0 1\n1 2 # a path\n");
  loaded_text_ = "[exchange]\nname = 'neighbour'\ngraph = 'file'\nfile = '" + dir_ + "/my.edges'\n";
  const std::string resolved = exchange({});
  EXPECT_EQ(resolved, "name = \"neighbour\"\nedges = \"0 1\\n1 2 # a path\\n\"\ngraph = \"file\"\n");

  // Its own recipe is the same graph, whatever has become of the file; another file is another graph.
  write("my.edges", "0 2\n1 2\n");
  write("other.edges", "0 3\n");
  loaded_text_ = "[exchange]\n" + resolved;
  EXPECT_EQ(exchange({}), resolved);
  EXPECT_NE(exchange({"exchange.file=" + dir_ + "/other.edges"}).find("edges = \"0 3\\n\""), std::string::npos);
  EXPECT_EQ(exchange({"exchange.graph=torus"}), "name = \"neighbour\"\ngraph = \"torus\"\n");
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");

  exchange({"exchange.file=" + dir_ + "/none.edges"});
  EXPECT_NE(problems_.text("?").find("exchange.file cannot be used"), std::string::npos) << problems_.text("?");
  problems_ = {};
  write("large.edges", std::string(most_edges_bytes + 1, '\n'));
  exchange({"exchange.file=" + dir_ + "/large.edges"});
  EXPECT_NE(problems_.text("?").find("exchange.file cannot be used"), std::string::npos) << problems_.text("?");
}

TEST_F(LoadSystem, TheRecipeOrAnOverrideMayNameItAndTheFlagWins) {
  EXPECT_NE(tables("system = 'one'", "").find("elastic"), std::string::npos);
  EXPECT_NE(tables("system = 'one'", "", {"system=two"}).find("param_mean"), std::string::npos);
  const std::string both = tables("system = 'one'", "two", {"system=one"});
  EXPECT_NE(both.find("param_mean"), std::string::npos);
  EXPECT_NE(both.find("system = \"two\""), std::string::npos) << both;
  EXPECT_EQ(tables("", "").find("[rule]"), std::string::npos);
}

TEST_F(LoadSystem, AnUnknownOneIsAProblemWithItsPlace) {
  tables("\nsystem = 'onee'\n", "");
  EXPECT_NE(problems_.text("?").find("r.toml:2: there is no system 'onee'; did you mean 'one'?"), std::string::npos)
      << problems_.text("?");
  write("sub/bad.toml", system("elastic", "[sync]\nname = 'ssp'\nstalenes = 2\n"));
  tables("", "bad");
  EXPECT_NE(problems_.text("?").find("sub/bad.toml:"), std::string::npos);
  EXPECT_NE(problems_.text("?").find("unknown key sync.stalenes; did you mean 'staleness'?"), std::string::npos);
}

TEST_F(LoadSystem, AResolvedRecipeNeedsNoSystemFile) {
  const std::string recipe = "[model]\nname='mlp'\n[data]\nkind='digits'\n[train]\nepochs=1\n[when]\ntau=9\n";
  tables(recipe, "one", {"rule.alpha=0.25"});
  const Recipe first = read_recipe("r.toml", loaded_, problems_);
  EXPECT_EQ(first.system, "one");
  EXPECT_EQ(write_toml(first.rule), "name = \"elastic\"\nalpha = 0.25\n");
  disk_->remove_all(dir_ + "/sub/one.toml");
  tables(resolved_toml(first), "");
  const Recipe again = read_recipe("r.toml", loaded_, problems_);
  EXPECT_EQ(again.system, "one");
  EXPECT_EQ(write_toml(again.rule), write_toml(first.rule));
  EXPECT_EQ(write_toml(again.exchange), "name = \"server\"\nservers = 2\n");
  EXPECT_EQ(write_toml(again.when), "tau = 9\n");
  tables(resolved_toml(first), "one");  // the same name again changes nothing
  EXPECT_EQ(write_toml(read_recipe("r.toml", loaded_, problems_).rule), write_toml(first.rule));
  EXPECT_TRUE(problems_.empty()) << problems_.text("?");
  tables(resolved_toml(first), "two");  // another one begins anew
  EXPECT_EQ(write_toml(read_recipe("r.toml", loaded_, problems_).rule), "name = \"param_mean\"\n");
}

}  // namespace
}  // namespace echelon
