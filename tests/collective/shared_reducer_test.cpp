#include "collective/shared_reducer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/random.h"

namespace echelon {
namespace {

float shared_leaf(int shard, std::size_t i) {  // of very different sizes, so that another order gives other bits
  const Stream s({.seed = 5, .shard = static_cast<std::uint32_t>(shard)});
  return s.normal(i) * std::pow(10.0f, static_cast<float>(s.below(8, i + 100000)) - 4);
}

float shared_definition(int lo, int hi, std::size_t i) {
  if (hi - lo == 1) return shared_leaf(lo, i);
  const int mid = tree_split(lo, hi);
  return shared_definition(lo, mid, i) + shared_definition(mid, hi, i);
}

// Cores that run their shards, and others' when they are done, in an order that is drawn: a core of low weight is slow.
struct DrawnOrder {
  static constexpr std::size_t floats = 40;

  DrawnOrder(int shards, int ranks, int rank, int cores) : shards(shards) {
    const ShardRange mine = shards_of(rank, ranks, shards);
    for (int c = 0; c < cores; ++c) {
      const ShardRange part = shards_of(c, cores, mine.count());
      dealt.push_back({mine.first + part.first, mine.first + part.last});
      const ShardRange& r = dealt.back();
      if (r.count() > 0) {
        memory.emplace_back(ShardReducer::memory_bytes(shards, r.first, r.last, floats));
        own.push_back(
            std::make_unique<ShardReducer>(shards, r.first, r.last, floats, memory.back().template as<std::byte>()));
      }
      reducers.push_back(r.count() > 0 ? own.back().get() : nullptr);
    }
    shared = std::make_unique<SharedReducer>(shards, dealt, reducers, floats);
  }

  // Returns how many shards changed cores.
  int step(const Stream& random) {
    struct Running {
      int shard = -1, place = -1;
      bool done = false;
    };
    std::vector<Running> running(dealt.size());
    std::vector<ShardRange> left = dealt;
    int taken = 0;
    shared->start_step();
    for (std::uint64_t draw = 0; std::ranges::any_of(running, [](const Running& r) { return !r.done; }); ++draw) {
      const std::size_t slow = random.below(static_cast<std::uint32_t>(dealt.size()), 1u << 20);
      const std::size_t c = random.below(static_cast<std::uint32_t>(dealt.size()), draw);
      if (running[c].done || (c == slow && random.below(4, draw + (1u << 21)) > 0)) continue;
      Running& r = running[c];
      if (r.shard >= 0) {
        for (std::size_t i = 0; i < floats; ++i) reducers[c]->contribution()[i] = shared_leaf(r.shard, i);
        shared->fold(static_cast<int>(c), r.shard, r.place);
        r = {};
      } else if (left[c].first < left[c].last) {
        r.shard = left[c].first++;
      } else {
        const auto victim = std::ranges::max_element(left, {}, [](const ShardRange& s) { return s.last - s.first; });
        const int place = reducers[c] ? shared->reserve_place(static_cast<int>(c)) : -1;
        if (place >= 0 && victim->first < victim->last) {
          r = {--victim->last, place};
          ++taken;
        } else {
          if (place >= 0) shared->release_place(place);
          r.done = true;
        }
      }
    }
    return taken;
  }

  int shards;
  std::vector<ShardRange> dealt;
  std::vector<Buffer> memory;
  std::vector<std::unique_ptr<ShardReducer>> own;
  std::vector<ShardReducer*> reducers;
  std::unique_ptr<SharedReducer> shared;
};

TEST(SharedReducer, TheSumHasTheBitsOfTheTreeWhoeverRunsTheShards) {
  int taken = 0;
  for (const int shards : {1, 2, 3, 5, 6, 8, 13, 16, 32})
    for (const int ranks : {1, 2, 3})
      for (const int cores : {2, 3, 5})
        for (int rank = 0; rank < ranks; ++rank) {
          DrawnOrder drawn(shards, ranks, rank, cores);
          for (std::uint32_t s = 0; s < 6; ++s) {
            taken += drawn.step(Stream({.seed = 7, .step = s, .shard = static_cast<std::uint32_t>(shards)}));
            for (const ShardReducer* r : drawn.reducers)
              for (const PartialSum& p : r ? r->partial_sums() : std::span<const PartialSum>{})
                for (std::size_t i = 0; i < DrawnOrder::floats; ++i)
                  ASSERT_EQ(p.data[i], shared_definition(p.first, p.last, i))
                      << shards << " shards, rank " << rank << " of " << ranks << ", " << cores << " cores, step " << s;
          }
        }
  EXPECT_GT(taken, 500) << "hardly any shard changed cores: the test shows nothing";
}

TEST(SharedReducer, TakesNoMemoryWhereNothingCanBeTakenOver) {
  EXPECT_EQ(DrawnOrder(2, 1, 0, 2).shared->bytes(), 0u);
  EXPECT_LE(DrawnOrder(8, 1, 0, 2).shared->bytes(), 2 * aligned(DrawnOrder::floats * sizeof(float)));
}

}  // namespace
}  // namespace echelon
