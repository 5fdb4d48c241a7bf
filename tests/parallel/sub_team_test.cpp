// Teams of some ranks (parallel/team/sub_team.h): collectives beside each other, and waits that the whole team hears
// of.

#include "parallel/team/sub_team.h"

#include <gtest/gtest.h>

#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

// Ranks 0 to 3 as a grid of 2 x 2: every row and every column is a team.
TEST(SubTeams, CollectivesOfTeamsThatCrossDoNotMeet) {
  for (const WorldUnderTest& kind : all_worlds())
    kind.run(4, [&](World& world) {
      Cores cores(1);
      Team whole(world, cores, true);
      const int row = world.rank() / 2, column = world.rank() % 2;
      SubTeam rows(whole, {row * 2, row * 2 + 1}, 1), columns(whole, {column, column + 2}, 2);
      for (int round = 0; round < 3; ++round) {
        const auto in_row = rows.team().all_gather_struct(world.rank() + 10 * round);
        const auto in_column = columns.team().all_gather_struct(world.rank() + 10 * round);
        const auto in_all = whole.all_gather_struct(world.rank() + 10 * round);
        require(in_row == std::vector{2 * row + 10 * round, 2 * row + 1 + 10 * round}, kind.name + ": the row's");
        require(in_column == std::vector{column + 10 * round, column + 2 + 10 * round}, kind.name + ": the column's");
        require(in_all.size() == 4 && in_all[3] == 3 + 10 * round, kind.name + ": everybody's");
      }
      std::int32_t number = rows.team().world().rank() == 0 ? 100 + row : -1;
      rows.team().broadcast(std::as_writable_bytes(std::span(&number, 1)));
      require(number == 100 + row, kind.name + ": from the first of the row");
    });
}

TEST(SubTeams, OfOneRankWaitForNobody) {
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e9), {.seed = 7}, [](World& world) {
    Cores cores(1);
    Team whole(world, cores, true);
    SubTeam alone(whole, {world.rank()}, 1);
    require(alone.team().is_everyone() && alone.team().all_gather_struct(7) == std::vector{7}, "itself");
  }).throw_if_failed();
}

// Rank 3 is late, and the team in which it is called 1 says so with its number in the job.
TEST(SubTeams, WaitsAreToldAndCountedInTheNumbersOfTheWhole) {
  run_in_simulation(SimCluster::uniform(4, 1e-5, 1e9), {.seed = 7}, [](World& world) {
    Cores cores(1);
    Team whole(world, cores, true);
    std::vector<WaitNotice> heard;
    whole.on_late = [&](const WaitNotice& notice) { heard.push_back(notice); };
    const int half = world.rank() % 2;
    SubTeam team(whole, {half, half + 2}, 1);
    if (world.rank() == 3) world.sleep(30);
    team.team().all_gather_struct(1);
    if (world.rank() != 1) {
      require(heard.empty(), "only one rank waits for long");
      return;
    }
    require(!heard.empty() && heard.front().names(3) && !heard.front().names(1), "rank 3 is late");
    require(heard.front().text.find("rank 3") != std::string::npos, heard.front().text);
    require(whole.waited_for_messages(3) > 29 && whole.waited_for_messages(2) == 0, "counted for rank 3");
  }).throw_if_failed();
}

}  // namespace
}  // namespace echelon
