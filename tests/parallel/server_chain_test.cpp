// Replicated servers: no acknowledged update is lost when one or two of three lose their state, whichever.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;

TEST(ServerChain, TheModelIsTheSameIfAServerLosesItsState) {
  for (const char* servers : {"1", "2"}) {
    const std::string chain = fmt::format("servers = {}\nreplicas = 2\n", servers);
    const auto whole = simulate_system(2, {.system = gradients_to_servers(chain, "bsp"), .steps = 30});
    const auto killed =
        simulate_system(2, {.system = gradients_to_servers(chain + "kill_server = '0@20'", "bsp"), .steps = 30});
    EXPECT_TRUE(same_bits(whole[0].model, killed[0].model));
    EXPECT_TRUE(same_bits(whole[1].weights, killed[1].weights));
    EXPECT_LT(killed[0].sent.bytes, whole[0].sent.bytes);  // afterwards the first has nothing to pass on
  }
}

// Any member: the first, those in the middle, the last; soon, later, near the end; and two of three, in every order.
TEST(ServerChain, WhicheverMemberIsLostTheModelIsTheSame) {
  constexpr int steps = 12;
  for (const char* servers : {"1", "'all'"})
    for (const int replicas : {2, 3, 4}) {
      const std::string chain = fmt::format("servers = {}\nreplicas = {}\n", servers, replicas);
      const auto whole = simulate_system(4, {.system = gradients_to_servers(chain, "bsp"), .steps = steps});
      const auto expect_same = [&](const std::string& kill) {
        SCOPED_TRACE(fmt::format("{}kill {}", chain, kill));
        const std::string deaths = fmt::format("kill_server = '{}'", kill);
        const auto killed = simulate_system(4, {.system = gradients_to_servers(chain + deaths, "bsp"), .steps = steps});
        for (std::size_t r = 0; r < killed.size(); ++r) {
          EXPECT_TRUE(same_bits(whole[r].model, killed[r].model)) << "rank " << r;
          EXPECT_TRUE(same_bits(whole[r].weights, killed[r].weights)) << "rank " << r;
        }
        EXPECT_NE(bytes_of(whole), bytes_of(killed)) << "it was not lost";
        EXPECT_EQ(killed[0].figures.at("updates"), steps);
      };
      for (int position = 0; position < replicas; ++position)
        for (const int at : {0, 5, steps - 1}) expect_same(fmt::format("0.{}@{}", position, at));
      if (replicas == 3)
        for (int first = 0; first < 3; ++first)
          for (int second = 0; second < 3; ++second)
            for (const int later : {0, 1, 4})
              if (first != second) expect_same(fmt::format("0.{}@3, 0.{}@{}", first, second, 3 + later));
      if (replicas == 4) expect_same("0.1@3, 0.2@3, 0.3@6");
    }
}

// Nobody waits for anybody: what comes when changes with a death, but every contribution is merged, and once.
TEST(ServerChain, WithoutRoundsEveryContributionIsMergedOnce) {
  constexpr int workers = 4, steps = 20;
  for (const char* sync : {"async", "delay", "value"})
    for (const char* kill : {"", "1@9", "1.1@9", "1.2@9", "1.1@0", "1.0@9, 1.1@20", "1.2@9, 1.1@9", "1.1@9, 1.2@30"}) {
      SCOPED_TRACE(fmt::format("{} {}", sync, kill));
      const std::string chain = fmt::format("servers = 2\nreplicas = 3\nkill_server = '{}'", kill);
      const auto all = simulate_system(workers, {.system = gradients_to_servers(chain, sync), .steps = steps});
      EXPECT_EQ(all[0].figures.at("updates"), workers * steps);
      EXPECT_GT(all[0].accuracy, 0.9);
      for (const SystemResult& r : all) EXPECT_TRUE(same_bits(r.model, all[0].model));
    }
}

// Who takes over has what the lost one had: with delays that compensate for what each worker has read, with filters
// that remember what they left out, with answers in a code, the model learns on.
TEST(ServerChain, WhatTakesOverKnowsAllThatWasKnown) {
  for (const int position : {0, 1, 2}) {
    const std::string kill = fmt::format("servers = 1\nreplicas = 3\nkill_server = '0.{}@13'\n", position);
    const auto filtered = gradients_to_servers(kill + "filters = ['significant']", "delay");
    const auto compensated = "[rule]\nname = 'grad_push'\ndc_lambda = 0.04\n[exchange]\nname = 'server'\n" + kill +
                             "[sync]\nname = 'async'\n";
    const auto coded = gradients_to_servers(kill, "bsp") + "[codec]\nname = 'fp16'\n";
    const auto quorum = gradients_to_servers(kill, "quorum") + "backups = 1\n";
    for (const std::string& system : {filtered, compensated, coded, quorum}) {
      SCOPED_TRACE(system);
      const auto all = simulate_system(4, {.system = system, .steps = 30});
      EXPECT_GT(all[0].accuracy, 0.9);
      for (const SystemResult& r : all) {
        EXPECT_EQ(r.reached, 30);
        EXPECT_TRUE(same_bits(r.model, all[0].model));
      }
    }
  }
}

// As they come from a real network: in threads, in any order.
TEST(ServerChain, InThreadsToo) {
  for (const char* kill : {"0@5", "0.1@5", "0.2@5", "0.1@5, 0.2@7", "0.2@5, 0.0@5"}) {
    SCOPED_TRACE(kill);
    const std::string chain = "servers = 'all'\nreplicas = 3\n";
    const auto whole = thread_system(4, {.system = gradients_to_servers(chain, "bsp"), .steps = 12});
    const auto killed = thread_system(
        4, {.system = gradients_to_servers(chain + fmt::format("kill_server = '{}'", kill), "bsp"), .steps = 12});
    for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(whole[r].model, killed[r].model));
  }
}

// Slices that are not pushed in a step are asked for all the same, also of the replica that is left.
TEST(ServerChain, SlicesThatWereNotChosenAreAnsweredToo) {
  const std::string some = "[order]\nname = 'magnitude'\nbytes = 64\nrate = 0.5\n";
  for (const char* kill : {"", "kill_server = '0@21'", "kill_server = '1@77'"}) {
    SCOPED_TRACE(kill);
    const std::string chain = fmt::format("servers = 2\nreplicas = 2\n{}", kill);
    const auto ranks =
        simulate_system(3, {.system = gradients_to_servers(chain, "delay") + some, .steps = 40, .batch = 30});
    for (const SystemResult& r : ranks) EXPECT_EQ(r.reached, 40);
    EXPECT_GT(ranks[0].accuracy, 0.9);
    EXPECT_TRUE(same_bits(ranks[0].model, ranks[2].model));
  }
}

TEST(ServerChain, ReplicasCostTheirTraffic) {
  const auto one = simulate_system(4, {.system = gradients_to_servers("servers = 1", "bsp"), .steps = 5});
  const auto two = simulate_system(4, {.system = gradients_to_servers("servers = 1\nreplicas = 2", "bsp"), .steps = 5});
  std::uint64_t more = 0;
  for (std::size_t r = 0; r < 4; ++r) more += two[r].sent.bytes - one[r].sent.bytes;
  EXPECT_EQ(more, 4 * (5 * (48 + 4 * one[0].model.size()) + 48));  // every push, and the end of the run
}

TEST(ServerChain, SaysWhatItNeeds) {
  Problems problems;
  composition_of(gradients_to_servers("kill_server = '0@20'", "bsp"), problems);
  EXPECT_NE(problems.text("").find("replicas to 2"), std::string::npos) << problems.text("");
  Problems few;
  check_composition(composition_of(gradients_to_servers("replicas = 4", "bsp"), few), {.workers = 3}, few);
  EXPECT_NE(few.text("").find("at most 3"), std::string::npos) << few.text("");
  const auto refused = [](const std::string& settings, const char* why) {
    Problems found;
    check_composition(composition_of(gradients_to_servers(settings, "bsp"), found), {.workers = 3}, found);
    EXPECT_NE(found.text("").find(why), std::string::npos) << settings << ": " << found.text("");
  };
  for (const char* text : {"0", "0@", "@3", "0.@3", "x@3", "0@3,", "0.1.1@3", "-1@3"})
    refused(fmt::format("replicas = 2\nkill_server = '{}'", text), "0.1@20");
  refused("replicas = 2\nkill_server = '0.2@3'", "replicas to 3");
  refused("replicas = 2\nkill_server = '0.0@3, 0.1@9'", "leaves no member");
  refused("replicas = 2\nkill_server = '1@3'", "names server 1");
  refused("replicas = 3\nkill_server = '0.1@3, 0.1@9'", "names 0.1 twice");
}

// What happens at the last possible info happens; a later one is refused.
TEST(ServerChain, RefusesWhatNeverHappens) {
  constexpr int workers = 3, steps = 6;
  for (const auto& [sync, updates] : {std::pair("bsp", steps), std::pair("async", steps * workers)}) {
    const auto system = [&](int at) {
      return gradients_to_servers(fmt::format("replicas = 2\nkill_server = '0@{}'", at), sync);
    };
    const auto problems_of = [&](int at) {
      Problems found;
      check_composition(composition_of(system(at), found), {.workers = workers, .steps = steps}, found);
      return found.text("");
    };
    EXPECT_EQ(problems_of(updates - 1), "");
    EXPECT_NE(problems_of(updates).find(fmt::format("at most {}: take a number below", updates)), std::string::npos)
        << problems_of(updates);
    const auto said = [&](int at) {
      int times = 0;
      simulate_system(workers, {.system = system(at), .steps = steps, .on_late = [&](const WaitNotice&) { ++times; }});
      return times;
    };
    EXPECT_GT(said(updates - 1), 0);
    EXPECT_EQ(said(updates), 0);
  }
}

TEST(ServerChain, CountsAnUpdateOnlyWhereStepsHaveAnExchange) {
  const auto problems_of = [](int at) {
    Problems found;
    const auto system =
        composition_of(fmt::format("[rule]\nname = 'elastic'\n[exchange]\nname = 'server'\nservers = 1\nreplicas = 2\n"
                                   "kill_server = '0@{}'\n[when]\ntau = 5\n[sync]\nname = 'async'\n",
                                   at),
                       found);
    check_composition(system, {.workers = 3, .steps = 20}, found);
    return found.text("");
  };
  EXPECT_EQ(problems_of(3 * 4 - 1), "");
  EXPECT_NE(problems_of(3 * 4).find("at most 12: take a number below"), std::string::npos) << problems_of(12);
}

TEST(ServerChain, SaysWhatWasLostAndWhoGoesOn) {
  const auto said = [](const std::string& kill) {
    std::vector<std::string> lines;
    const std::string chain = fmt::format("servers = 2\nreplicas = 3\nkill_server = '{}'", kill);
    simulate_system(4, {.system = gradients_to_servers(chain, "bsp"),
                        .steps = 12,
                        .on_late = [&](const WaitNotice& late) { lines.push_back(late.text); }});
    return lines;
  };
  const auto says = [](const std::string& line, const std::string& words) {
    EXPECT_NE(line.find(words), std::string::npos) << line;
  };
  const auto first = said("0@5");  // its rank is the first one: one line in all
  ASSERT_EQ(first.size(), 1u);
  says(first[0], "server 0.0 on rank 0 has lost its state after 5 updates");
  says(first[0], "(step 6 of this rank): 0.1 on rank 1 takes over");
  const auto middle = said("1.1@7");  // on rank 3: there, and where people read
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_EQ(middle[0], middle[1]);
  says(middle[0], "server 1.1 on rank 3 has lost its state after 7 updates");
  says(middle[0], "1.0 on rank 2 passes messages on past it");
  for (const std::string& line : said("0.2@0")) says(line, "0.1 on rank 1 answers from now on");
  EXPECT_EQ(said("0.2@0").size(), 2u);
  EXPECT_TRUE(said("").empty());
}

}  // namespace
}  // namespace echelon
