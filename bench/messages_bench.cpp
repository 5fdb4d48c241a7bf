// What a message and a barrier cost between two ranks on this machine, as threads and as processes: half a round trip
// of a small message, a barrier, and the rate of large messages (read in place from the arena; through the ring from
// memory that the other cannot see), beside a plain copy of the same bytes.
//
//     bench_messages [RANKS]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "world/launch.h"

namespace {

using namespace echelon;

constexpr double forever = std::numeric_limits<double>::infinity();

// The best of several rounds: other programs may be using the cores.
double best_seconds(World& world, SharedBarrier& barrier, int rounds, const std::function<void()>& act) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    barrier.wait(forever);
    const double begun = world.now();
    act();
    best = std::min(best, world.now() - begun);
  }
  return best;
}

void measure(World& world) {
  const auto barrier = world.shared_memory()->barrier("all", world.rank(), world.size());
  const bool first = world.rank() == 0;
  const Rank other = world.rank() ^ 1;
  const bool paired = other < world.size();
  const char* name = world.place().world.c_str();

  double seconds = best_seconds(world, *barrier, 60, [&] {
    for (int i = 0; i < 1000; ++i) barrier->wait(forever);
  });
  if (first) std::printf("%-10s barrier of %d ranks          %8.3f us\n", name, world.size(), seconds / 1000 * 1e6);

  std::vector<std::byte> small(64);
  seconds = best_seconds(world, *barrier, 60, [&] {
    for (int i = 0; i < 500 && paired; ++i) {
      if (world.rank() % 2 == 0) world.send(other, 0, {}, small).wait(forever);
      world.receive(other, 0, {}, small).wait(forever);
      if (world.rank() % 2 == 1) world.send(other, 0, {}, small).wait(forever);
    }
  });
  if (first) std::printf("%-10s 64 B, one way               %8.3f us\n", name, seconds / 1000 * 1e6);

  constexpr std::size_t bytes = std::size_t{16} << 20;
  const auto arena = world.shared_memory()->get("rank " + std::to_string(world.rank()), bytes);
  std::vector<std::byte> own(bytes, std::byte{1}), into(bytes, std::byte{2});
  std::memset(arena.data(), 1, bytes);
  const auto report = [&](const char* what, double best) {
    if (first) std::printf("%-10s 16 MiB, %-19s %8.2f GB/s\n", name, what, static_cast<double>(bytes) / best / 1e9);
  };
  const auto one_way = [&](std::span<const std::byte> from) {
    if (!paired) return;
    if (world.rank() % 2 == 0)
      world.send(other, 1, {}, from).wait(forever);
    else
      world.receive(other, 1, {}, into).wait(forever);
  };
  report("from the arena", best_seconds(world, *barrier, 15, [&] { one_way(arena); }));
  report("from own memory", best_seconds(world, *barrier, 15, [&] { one_way(own); }));
  report("a plain copy", best_seconds(world, *barrier, 15, [&] {
           if (first) std::memcpy(into.data(), arena.data(), bytes);
         }));
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  run_in_threads(ranks, {}, measure);
  run_in_processes(ranks, {}, measure);
}
