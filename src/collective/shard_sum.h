#pragma once
// The sum over the logical shards of a global batch when several ranks hold them: always in the fixed tree
// (shard_tree.h), so that its bits are the same for any number of ranks, also if some ranks hold no shard.
//
// S shards are spread over the members in order: member i holds shards_of(i, n, S). It brings the partial sums over its
// own shards (of all its cores, in order). Every partial sum's data is indexed like `out`; only the elements
// [begin, end) are read. Each member owns a range of the elements (`owned`) and computes their sum:
//   in shared memory  It reads all members' partial sums in place, if all of them and all results lie in memory from
//                     Group::allocate, and writes the sum into every member's result: two barriers, no messages.
//   with messages     Otherwise it receives the partial sums of its elements, one for each tree node that the sender's
//                     shards make up, and sends the sum to the n - 1 others.
//
// The two halves are also separate functions, for a caller that updates in between: reduce_scatter_shards, then
// all_gather_owned. Collective; throws PeerLost, Mismatch, TooLate. Allocates nothing once an operation of that size
// has been seen.

#include <cstddef>
#include <span>
#include <string_view>

#include "collective/algorithms.h"
#include "collective/group.h"
#include "collective/shard_tree.h"
#include "collective/topology.h"

namespace echelon {

struct ShardSum {
  int shards = 1;
  std::span<const PartialSum> partials = {};  // this member's
  std::size_t begin = 0, end = 0;             // elements
  float* out = nullptr;                       // out[begin..end); may be the memory of one of the partial sums
  // The elements that each member owns, relative to `begin`, in order and without gaps. None: owned().
  std::span<const Range> parts = {};
};

// Every member gets the sum of all elements. `name` is the caller's name for the operation, for notices.
void all_reduce_shards(Group& group, const ShardSum& sum, std::string_view name = {});

// The same where every member has one shard, in place: the sum over all members.
void all_reduce_members(Group& group, std::span<float> values);

// The elements of [begin, end) that member `index` of n owns: whole cache lines.
Range owned(int index, int n, std::size_t begin, std::size_t end);

// Every member gets the sum of the elements that it owns.
void reduce_scatter_shards(Group& group, const ShardSum& sum, std::string_view name = {});
// Every member has its own elements of data[begin..end) and gets the others.
void all_gather_owned(Group& group, float* data, std::size_t begin, std::size_t end, std::string_view name = {});

// What member `index` sends in all_reduce_shards with messages.
MemberTraffic shard_sum_traffic(int index, int n, int shards, std::size_t elements);

}  // namespace echelon
