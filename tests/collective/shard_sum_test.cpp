#include "collective/shard_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "collective/algorithms.h"
#include "tensor/buffer.h"
#include "world/launch.h"

namespace echelon {
namespace {

float number(int shard, std::size_t i) {  // of very different sizes, so that another order gives other bits
  const Stream s({.seed = 3, .shard = static_cast<std::uint32_t>(shard)});
  return s.normal(i) * std::pow(10.0f, static_cast<float>(s.below(8, i + 100000)) - 4);
}

float tree_sum(int lo, int hi, std::size_t i) {
  if (hi - lo == 1) return number(lo, i);
  const int mid = tree_split(lo, hi);
  return tree_sum(lo, mid, i) + tree_sum(mid, hi, i);
}

constexpr std::size_t elements = 1500;
constexpr std::size_t begin = 37, end = 1481;  // of them are summed

std::vector<float> definition(int shards) {
  std::vector<float> sum(elements);
  for (std::size_t i = begin; i < end; ++i) sum[i] = tree_sum(0, shards, i);
  return sum;
}

// One rank's shards on two cores, as a trainer has them; the partial sums lie in memory that others see, or not.
struct Holder {
  Holder(Group& group, int shards, bool shared) {
    const ShardRange mine = shards_of(group.index(), group.size(), shards);
    for (int core = 0; core < 2; ++core) {
      const ShardRange some = shards_of(core, 2, mine.count());
      const int first = mine.first + some.first, last = mine.first + some.last;
      if (first == last) continue;
      ShardReducer& folder = *folders.emplace_back(std::make_unique<ShardReducer>(
          shards, first, last, elements,
          folder_memory.emplace_back(ShardReducer::memory_bytes(shards, first, last, elements)).as<std::byte>()));
      folder.start_step();
      for (int s = first; s < last; ++s) {
        for (std::size_t i = 0; i < elements; ++i) folder.contribution()[i] = number(s, i);
        folder.fold();
      }
      for (const PartialSum& p : folder.partial_sums()) partials.push_back(p);
    }
    out = std::span<float>(memory = std::vector<float>(elements));
    if (!shared) return;
    const std::span<float> common = group.allocate_numbers<float>(elements * 24);
    for (std::size_t k = 0; k < partials.size(); ++k) {
      std::memcpy(&common[k * elements], partials[k].data, elements * sizeof(float));
      partials[k].data = &common[k * elements];
    }
    out = common.subspan(23 * elements, elements);
  }
  ShardSum sum(int shards) const { return {shards, partials, begin, end, out.data()}; }

  std::vector<Buffer> folder_memory;
  std::vector<std::unique_ptr<ShardReducer>> folders;
  std::vector<PartialSum> partials;
  std::vector<float> memory;
  std::span<float> out;
};

void expect_same(std::span<const float> got, std::span<const float> want, std::size_t from, std::size_t to,
                 const std::string& what) {
  if (std::memcmp(&got[from], &want[from], (to - from) * sizeof(float)) != 0) fail("other bits: {}", what);
}

TEST(ShardSum, HasTheSameBitsForAnyNumberOfRanksByEveryAlgorithmThatClaimsIt) {
  for (const int shards : {1, 2, 3, 4, 6, 8, 13, 16}) {
    const std::vector<float> want = definition(shards);
    for (const int n : {1, 2, 3, 4, 5, 8}) {
      int claims = 0;
      for (const Algorithm& a : all_reduce_algorithms()) {
        if (!a.fixed_tree || !a.fixed_tree(n, shards)) continue;
        ++claims;
        for (const bool shared : {false, true})
          run_in_threads(n, {}, [&](World& world) {
            Group group = Group::everyone(world);
            const Holder holder(group, shards, shared);
            all_reduce_shards(group, holder.sum(shards), {.algorithm = &a});
            expect_same(holder.out, want, begin, end, fmt::format("{}, {} shards on {} ranks", a.name, shards, n));
          });
      }
      EXPECT_GE(claims, 2);
    }
  }
}

TEST(ShardSum, ItsHalvesGiveTheSameBits) {
  for (const int shards : {1, 5, 8}) {
    const std::vector<float> want = definition(shards);
    for (const int n : {1, 2, 3, 5, 8})
      for (const bool shared : {false, true})
        run_in_threads(n, {}, [&](World& world) {
          Group group = Group::everyone(world);
          const Holder holder(group, shards, shared);
          reduce_scatter_shards(group, holder.sum(shards));
          const Range mine = owned(group.index(), n, begin, end);
          expect_same(holder.out, want, mine.begin, mine.end, fmt::format("own part, {} of {}", shards, n));
          all_gather_owned(group, holder.out.data(), begin, end);
          expect_same(holder.out, want, begin, end, fmt::format("all, {} of {}", shards, n));
        });
  }
}

TEST(ShardSum, TheResultMayTakeThePlaceOfAPartialSum) {
  const std::vector<float> want = definition(8);
  for (const bool shared : {false, true})
    run_in_threads(4, {}, [&](World& world) {
      Group group = Group::everyone(world);
      const Holder holder(group, 8, shared);
      ShardSum sum = holder.sum(8);
      sum.out = const_cast<float*>(sum.partials[0].data);
      for (const char* name : {"owners"}) {
        all_reduce_shards(group, sum, {.algorithm = shared ? nullptr : &find_algorithm(name)});
        expect_same({sum.out, elements}, want, begin, end, "in place");
      }
    });
}

TEST(ShardSum, RecursiveDoublingClaimsItOnlyWhereTheTreesLineUp) {
  const auto claims = find_algorithm("recursive-doubling").fixed_tree;
  EXPECT_TRUE(claims(4, 8));
  EXPECT_TRUE(claims(2, 2));
  EXPECT_FALSE(claims(2, 6));  // the tree splits six shards into four and two
  EXPECT_FALSE(claims(3, 6));
  EXPECT_FALSE(claims(4, 2));
  for (const char* other : {"ring", "binomial", "double-tree", "rabenseifner", "hierarchical", "native"}) {
    const Algorithm& a = find_algorithm(other);
    EXPECT_TRUE(!a.fixed_tree || !a.fixed_tree(4, 8)) << other;
  }
}

TEST(ShardSum, OneThatDoesNotClaimItIsRefused) {
  EXPECT_THROW(run_in_threads(2, {},
                              [](World& world) {
                                Group group = Group::everyone(world);
                                const Holder holder(group, 4, false);
                                all_reduce_shards(group, holder.sum(4), {.algorithm = &find_algorithm("ring")});
                              }),
               BadInput);
}

}  // namespace
}  // namespace echelon
