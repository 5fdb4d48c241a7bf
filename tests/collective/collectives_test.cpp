#include "collective/collectives.h"
#include "collective/peer_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "collective/all_reduce.h"
#include "world/launch.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t value(int rank, std::size_t i) { return 1000 * (rank + 1) + static_cast<std::int64_t>(i % 1000); }

Ints ints_brought(int rank, std::size_t count) {
  Ints x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = value(rank, i);
  return x;
}

void expect(bool holds, std::string_view what, World& world, std::size_t count) {
  if (!holds) fail("{} of {} numbers is wrong with {} ranks", what, count, world.size());
}

// All of them, on numbers of the ranks' own or in shared memory.
void everything(World& world, std::size_t count, bool shared) {
  Group group = Group::everyone(world);
  const int n = world.size(), me = world.rank();
  const auto sum = [&](std::size_t i) {
    std::int64_t s = 0;
    for (int r = 0; r < n; ++r) s += value(r, i);
    return s;
  };
  const auto place = [&](const Ints& from) {
    if (!shared) return std::pair<Ints, std::span<std::int64_t>>(from, {});
    const auto common = group.allocate_span<std::int64_t>(from.size());
    std::ranges::copy(from, common.begin());
    return std::pair<Ints, std::span<std::int64_t>>({}, common);
  };
  const auto view = [&](std::pair<Ints, std::span<std::int64_t>>& p) {
    return shared ? p.second : std::span<std::int64_t>(p.first);
  };

  for (int root = 0; root < n; ++root) {
    Ints x = ints_brought(me, count);
    broadcast(group, typed_span(std::span(x)), root);
    expect(x == ints_brought(root, count), "broadcast", world, count);

    x = ints_brought(me, count);
    reduce(group, typed_span(std::span(x)), Reduction::sum, root);
    for (std::size_t i = 0; i < count && me == root; ++i) expect(x[i] == sum(i), "reduce", world, count);

    Ints all(me == root ? count * static_cast<std::size_t>(n) : 0);
    x = ints_brought(me, count);
    gather(group, const_typed_span(std::span(x)), typed_span(std::span(all)), root);
    for (int r = 0; r < n && me == root; ++r)
      for (std::size_t i = 0; i < count; ++i)
        expect(all[static_cast<std::size_t>(r) * count + i] == value(r, i), "gather", world, count);
    Ints mine(count);
    scatter(group, const_typed_span(std::span(all)), typed_span(std::span(mine)), root);
    expect(mine == x, "scatter", world, count);
  }

  auto p = place(ints_brought(me, count));
  reduce_scatter(group, typed_span(view(p)), Reduction::sum);
  const Range part = part_of(me, n, count);
  for (std::size_t i = part.begin; i < part.end; ++i) expect(view(p)[i] == sum(i), "reduce-scatter", world, count);

  p = place(Ints(count * static_cast<std::size_t>(n)));
  const Ints own = ints_brought(me, count);
  all_gather(group, const_typed_span(std::span(own)), typed_span(view(p)));
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i)
      expect(view(p)[static_cast<std::size_t>(r) * count + i] == value(r, i), "all-gather", world, count);

  // Variable counts: member r brings r * r numbers.
  std::vector<Range> parts;
  for (std::size_t r = 0, at = 0; r < static_cast<std::size_t>(n); at += r * r, ++r) parts.push_back({at, at + r * r});
  p = place(Ints(parts.back().end));
  const Range mine = parts[static_cast<std::size_t>(me)];
  for (std::size_t i = mine.begin; i < mine.end; ++i) view(p)[i] = value(me, i);
  all_gather(group, typed_span(view(p)), parts);
  for (int r = 0; r < n; ++r)
    for (std::size_t i = parts[static_cast<std::size_t>(r)].begin; i < parts[static_cast<std::size_t>(r)].end; ++i)
      expect(view(p)[i] == value(r, i), "all-gather of variable counts", world, count);

  Ints out(count * static_cast<std::size_t>(n)), in(out.size());
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i) out[static_cast<std::size_t>(r) * count + i] = value(me, i) * 100 + r;
  all_to_all(group, const_typed_span(std::span(out)), typed_span(std::span(in)));
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i)
      expect(in[static_cast<std::size_t>(r) * count + i] == value(r, i) * 100 + me, "all-to-all", world, count);
  barrier(group);
}

TEST(Collectives, GiveWhatTheyPromiseInThreads) {
  for (const int n : {1, 2, 3, 5, 8})
    for (const std::size_t count : {0u, 1u, 7u, 20011u})
      run_in_threads(n, {}, [&](World& world) { everything(world, count, false); });
}

TEST(Collectives, GiveWhatTheyPromiseInSharedMemory) {
  for (const int n : {1, 2, 3, 5})
    for (const std::size_t count : {1u, 7u, 20011u})
      run_in_threads(n, {}, [&](World& world) { everything(world, count, true); });
}

TEST(Collectives, GiveWhatTheyPromiseInASimulation) {
  for (const int n : {1, 2, 3, 5, 8, 13})
    for (const std::size_t count : {0u, 1u, 7u, 20011u})
      run_in_simulation(SimCluster::uniform(n, 5e-6, 1.25e9), {}, [&](World& world) {
        everything(world, count, true);
      }).throw_if_failed();
}

TEST(Collectives, GatherStructBringsEveryMembersRecord) {
  struct Record {
    std::int32_t rank;
    double square;
    bool even;
  };
  run_in_threads(3, {}, [](World& world) {
    Group group = Group::everyone(world);
    const int me = world.rank();
    const std::vector<Record> all = all_gather_struct(group, Record{me, 1.0 * me * me, me % 2 == 0}, "records");
    expect(all.size() == 3, "the count of records", world, all.size());
    for (int r = 0; r < 3; ++r) {
      const Record& record = all[static_cast<std::size_t>(r)];
      expect(record.rank == r && record.square == 1.0 * r * r && record.even == (r % 2 == 0), "a record", world, 1);
    }
  });
}

TEST(Collectives, NobodyLeavesABarrierBeforeAllHaveArrived) {
  std::atomic<int> arrived = 0;
  const auto late = [&](World& world) {
    Group group = Group::everyone(world);
    for (int round = 1; round <= 20; ++round) {
      if (world.rank() == round % world.size()) world.sleep(0.002);
      ++arrived;
      barrier(group);
      if (arrived < round * world.size()) fail("rank {} went on alone", world.rank());
      barrier(group);
    }
  };
  run_in_threads(4, {}, late);
  arrived = 0;
  run_in_simulation(SimCluster::uniform(5, 5e-6, 1.25e9), {}, late).throw_if_failed();
}

// A member may be seen while it moves on from a barrier to numbers: that is no other operation.
TEST(Collectives, MembersThatMoveOnAreNotTakenForOthersInAnotherOperation) {
  run_in_threads(2, {}, [](World& world) {
    Group group = Group::everyone(world);
    const auto numbers = group.allocate_span<float>(64);
    for (int round = 0; round < 20000; ++round) {
      barrier(group);
      all_reduce(group, typed_span(numbers), Reduction::sum);
      if (round % 100 == 0) std::ranges::fill(numbers, 0.0f);
    }
  });
}

TEST(PeerMemory, IsReadInPlaceWhereMembersShareMemory) {
  run_in_threads(3, {}, [](World& world) {
    Group group = Group::everyone(world);
    const std::span<float> mine = group.allocate_span<float>(5);
    mine[4] = static_cast<float>(10 + world.rank());
    const auto copies = copies_of_members(group, std::as_bytes(mine));
    barrier(group);
    expect(copies.size() == 3, "a copy of each", world, copies.size());
    for (std::size_t m = 0; m < copies.size(); ++m)
      expect(reinterpret_cast<const float*>(copies[m])[4] == static_cast<float>(10 + m), "its own", world, m);
    barrier(group);
  });
  run_in_simulation(SimCluster::uniform(2, 5e-6, 1.25e9), {}, [](World& world) {
    Group group = Group::everyone(world);
    const std::span<float> mine = group.allocate_span<float>(5);
    expect(copies_of_members(group, std::as_bytes(mine)).empty(), "no shared memory", world, 5);
  }).throw_if_failed();
}

}  // namespace
}  // namespace echelon
