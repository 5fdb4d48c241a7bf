#include "collective/shard_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "tensor/buffer.h"

namespace echelon {
namespace {

float leaf_number(int shard, std::size_t i) {  // of very different sizes, so that another order gives other bits
  const Stream s({.seed = 3, .shard = static_cast<std::uint32_t>(shard)});
  return s.normal(i) * std::pow(10.0f, static_cast<float>(s.below(8, i + 100000)) - 4);
}

// The definition, by recursion.
float tree_definition(int lo, int hi, std::size_t i) {
  if (hi - lo == 1) return leaf_number(lo, i);
  const int mid = tree_split(lo, hi);
  return tree_definition(lo, mid, i) + tree_definition(mid, hi, i);
}

std::vector<float> sum_with_cores(int shards, int cores, std::size_t floats) {
  std::vector<Buffer> memory;
  std::vector<ShardReducer> folders;
  std::vector<PartialSum> all;
  for (int c = 0; c < cores; ++c) {
    const int first = c * shards / cores, last = (c + 1) * shards / cores;
    if (first == last) continue;
    memory.emplace_back(ShardReducer::memory_bytes(shards, first, last, floats));
    folders.emplace_back(shards, first, last, floats, memory.back().as<std::byte>());
    for (int step = 0; step < 2; ++step) {  // twice: a step leaves nothing behind for the next
      folders.back().start_step();
      for (int s = first; s < last; ++s) {
        for (std::size_t i = 0; i < floats; ++i) folders.back().contribution()[i] = leaf_number(s, i);
        if (step == 0) {
          folders.back().fold();
          continue;
        }
        for (std::size_t at = 0; at < floats; at += 1000) folders.back().fold_part(at, std::min(floats, at + 1000));
        folders.back().end_shard();
      }
    }
  }
  for (auto& f : folders)
    for (const PartialSum& p : f.partial_sums()) all.push_back(p);
  std::vector<float> out(floats);
  const std::size_t half = floats / 3;
  sum_over_shards(shards, all, 0, half, out.data());
  sum_over_shards(shards, all, half, floats, out.data());
  return out;
}

TEST(ShardTree, TheSumHasTheSameBitsForAnyNumberOfCores) {
  constexpr std::size_t floats = 5000;
  for (int shards : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
    std::vector<float> expected(floats);
    for (std::size_t i = 0; i < floats; ++i) expected[i] = tree_definition(0, shards, i);
    for (int cores : {1, 2, 3, 4, 5, 8, 16}) {
      const auto got = sum_with_cores(shards, cores, floats);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), floats * sizeof(float)), 0)
          << shards << " shards on " << cores << " cores";
    }
  }
}

TEST(ShardTree, TheSumHasTheSameBitsInAnyOrderOfShards) {
  constexpr std::size_t floats = 100;
  for (const int shards : {2, 3, 6, 8, 16})
    for (const int stride : {1, 2, 3, 5}) {
      std::vector<int> order;
      for (int start = 0; start < stride; ++start)
        for (int s = start; s < shards; s += stride) order.push_back(shards - 1 - s);
      Buffer memory(ShardReducer::memory_bytes(shards, 0, shards, floats, order));
      ShardReducer reducer(shards, 0, shards, floats, memory.as<std::byte>(), order);
      for (int step = 0; step < 2; ++step) {
        reducer.start_step();
        for (const int s : order) {
          for (std::size_t i = 0; i < floats; ++i) reducer.contribution()[i] = leaf_number(s, i);
          reducer.fold();
        }
      }
      ASSERT_EQ(reducer.partial_sums().size(), 1u);
      for (std::size_t i = 0; i < floats; ++i)
        ASSERT_EQ(reducer.total()[i], tree_definition(0, shards, i)) << shards << " shards, stride " << stride;
    }
}

TEST(ShardTree, OneCoreHoldsOneSumPerLevel) {
  EXPECT_EQ(ShardReducer::memory_bytes(1, 0, 1, 16), 64u);
  EXPECT_LE(ShardReducer::memory_bytes(16, 0, 16, 16), (1u + 5u) * 64u);
}

}  // namespace
}  // namespace echelon
