// Some ranks of a world as a world of their own (world/wrappers/sub_world.h), in every world.

#include "world/wrappers/sub_world.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/world/all_worlds.h"

namespace echelon::test {
namespace {

class SubWorlds : public OnEveryWorld {};
INSTANTIATE_TEST_SUITE_P(World, SubWorlds, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

// Rows and columns of a grid of 2 x 3 ranks; columns are numbered from below.
struct Grid {
  explicit Grid(World& world) : row_number(world.rank() / 3), column_number(world.rank() % 3) {
    row = make_sub_world(world, {row_number * 3, row_number * 3 + 1, row_number * 3 + 2}, 1);
    column = make_sub_world(world, {column_number + 3, column_number}, 2);
  }
  const int row_number, column_number;
  std::unique_ptr<World> row, column;
};

TEST_P(SubWorlds, RanksAreNumberedAsTheyAreListed) {
  run(6, [](World& world) {
    const Grid grid(world);
    require(grid.row->size() == 3 && grid.row->rank() == grid.column_number, "a row");
    require(grid.column->size() == 2 && grid.column->rank() == 1 - grid.row_number, "a column");
    require(grid.row->place().host.size() == 3 && grid.row->place().world == world.place().world, "its place");
    require(grid.row->shared_memory() == nullptr, "memory in common belongs to all ranks");
    require(rank_in_job(*grid.column, 0) == grid.column_number + 3 && rank_in_job(world, 4) == 4, "in the job");
    const auto inner = make_sub_world(*grid.row, {2, grid.row->rank()}, 3);
    require(grid.row->rank() == 2 || rank_in_job(*inner, 0) == grid.row_number * 3 + 2, "of a sub-world in another");
  });
}

// Two ranks that meet in the world and in two sub-worlds, on the same channel, with the same label: the receiver takes
// the messages in another order than they were sent in.
TEST_P(SubWorlds, MessagesOnOneChannelDoNotMeet) {
  run(3, [](World& world) {
    if (world.rank() == 1) return;
    const auto first = make_sub_world(world, {0, 2}, 1), second = make_sub_world(world, {2, 0}, 2);
    const std::array<World*, 3> worlds{&world, first.get(), second.get()};
    const std::array<Rank, 3> sender{0, 0, 1}, receiver{2, 1, 0};
    constexpr Channel channel = 5;
    std::array<std::vector<std::byte>, 3> bytes;
    std::vector<Work> works;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t at = world.rank() == 0 ? i : 2 - i;
      bytes[at] = world.rank() == 0 ? random_bytes(1000, static_cast<int>(at)) : std::vector<std::byte>(1000);
      works.push_back(world.rank() == 0 ? worlds[at]->send(receiver[at], channel, label(7), bytes[at])
                                        : worlds[at]->receive(sender[at], channel, label(7), bytes[at]));
    }
    for (Work& work : works) require(work.wait(forever), "every message arrives");
    for (std::size_t at = 0; at < 3; ++at)
      require(bytes[at] == random_bytes(1000, static_cast<int>(at)), fmt::format("message of world {}", at));
  });
}

TEST_P(SubWorlds, PiecesOfAMessageGoToItsSink) {
  run(3, [](World& world) {
    if (world.rank() == 1) return;
    const auto sub = make_sub_world(world, {2, 0}, 1);
    std::vector<std::byte> bytes = random_bytes(5000, 3), into(5000);
    if (sub->rank() == 0) {
      require(sub->send(1, 4, label(1), bytes).wait(forever), "sent");
      return;
    }
    Sink sink{.self = &into, .take = [](void* self, std::size_t offset, std::span<const std::byte> piece) {
                auto& target = *static_cast<std::vector<std::byte>*>(self);
                std::copy(piece.begin(), piece.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
              }};
    require(sub->receive(0, 4, label(1), into.size(), sink).wait(forever) && into == bytes, "what was sent");
  });
}

// In one memory, so that nothing is on its way.
TEST(SubWorld, AStatusIsToldInTheNumbersOfWhoeverReadsIt) {
  run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [](World& world) {
    if (world.rank() == 1) return;
    const auto sub = make_sub_world(world, {2, 0}, 1);
    if (world.rank() == 2) {
      sub->set_status("backward of conv2");
      sub->set_waiting_for(1);
      world.sleep(2);
      world.set_waiting_for(1);  // who is not in the sub-world
      world.sleep(2);
      sub->set_waiting_for(-1);
      world.sleep(2);
      return;
    }
    world.sleep(1);
    require(world.status_of(2) == RankStatus{"backward of conv2", 0}, "the world's number");
    require(sub->status_of(0) == RankStatus{"backward of conv2", 1}, "the sub-world's number");
    world.sleep(2);
    require(world.status_of(2).waiting_for == 1 && sub->status_of(0).waiting_for == -1, "a rank outside");
    world.sleep(2);
    require(world.status_of(2).waiting_for == -1 && sub->status_of(0).waiting_for == -1, "nobody");
  }).throw_if_failed();
}

TEST(SubWorld, ItsEndIsTheEndOfTheJob) {
  const SimReport report = run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [](World& world) {
    if (world.rank() == 1) {
      std::vector<std::byte> never(8);
      world.receive(0, 1, label(0), never).wait(forever);
      return;
    }
    const auto sub = make_sub_world(world, {2, 0}, 1);
    if (sub->rank() == 0) sub->abort("the disk of stage 1 is full");
    std::vector<std::byte> never(8);
    sub->receive(1 - sub->rank(), 1, label(0), never).wait(forever);
  });
  ASSERT_FALSE(report.ok());
  for (const auto& failure : report.failures) EXPECT_NE(failure.text.find("disk of stage 1"), std::string::npos);
}

}  // namespace
}  // namespace echelon::test
