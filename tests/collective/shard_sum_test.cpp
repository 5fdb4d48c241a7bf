#include "collective/shard_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "tensor/buffer.h"
#include "world/launch.h"
#include "world/wrappers/metered.h"

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
      ShardReducer& reducer = *reducers.emplace_back(std::make_unique<ShardReducer>(
          shards, first, last, elements,
          reducer_memory.emplace_back(ShardReducer::memory_bytes(shards, first, last, elements)).as<std::byte>()));
      reducer.start_step();
      for (int s = first; s < last; ++s) {
        for (std::size_t i = 0; i < elements; ++i) reducer.contribution()[i] = number(s, i);
        reducer.fold();
      }
      for (const PartialSum& p : reducer.partial_sums()) partials.push_back(p);
    }
    out = std::span<float>(memory = std::vector<float>(elements));
    if (!shared) return;
    const std::span<float> common = group.allocate_span<float>(elements * 24);
    for (std::size_t k = 0; k < partials.size(); ++k) {
      std::memcpy(&common[k * elements], partials[k].data, elements * sizeof(float));
      partials[k].data = &common[k * elements];
    }
    out = common.subspan(23 * elements, elements);
  }
  ShardSum sum(int shards) const { return {shards, partials, begin, end, out.data()}; }

  std::vector<Buffer> reducer_memory;
  std::vector<std::unique_ptr<ShardReducer>> reducers;
  std::vector<PartialSum> partials;
  std::vector<float> memory;
  std::span<float> out;
};

void expect_same(std::span<const float> got, std::span<const float> want, std::size_t from, std::size_t to,
                 const std::string& what) {
  if (std::memcmp(&got[from], &want[from], (to - from) * sizeof(float)) != 0) fail("other bits: {}", what);
}

TEST(ShardSum, HasTheSameBitsForAnyNumberOfRanksInSharedMemoryAndWithMessages) {
  for (const int shards : {1, 2, 3, 4, 6, 8, 13, 16}) {
    const std::vector<float> want = definition(shards);
    for (const int n : {1, 2, 3, 4, 5, 8})
      for (const bool shared : {false, true})
        run_in_threads(n, {}, [&](World& world) {
          Group group = Group::everyone(world);
          const Holder holder(group, shards, shared);
          all_reduce_shards(group, holder.sum(shards));
          expect_same(holder.out, want, begin, end, fmt::format("{} shards on {} ranks", shards, n));
        });
  }
}

// As training has them: one contribution per worker, in memory of the group.
TEST(ShardSum, MembersSumInSharedMemoryWithoutMessages) {
  const std::vector<float> want = definition(3);
  run_in_threads(3, {}, [&](World& inner) {
    const auto world = make_metered(inner);
    Group group = Group::everyone(*world);
    const auto values = group.allocate_span<float>(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = number(group.index(), i);
    all_reduce_members(group, values);
    expect_same(values, want, begin, end, "in place");
    if (world->sent()->messages != 0) fail("{} messages", world->sent()->messages);
  });
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
      all_reduce_shards(group, sum);
      expect_same({sum.out, elements}, want, begin, end, "in place");
    });
}

}  // namespace
}  // namespace echelon
