#pragma once
// The sum over the logical shards of a global batch, when ranks hold them: always in the one fixed tree (shard_tree.h),
// so that its bits are the same for any number of ranks, also if some hold no shard at all.
//
// S shards are spread over the members in order: member i holds shards_of(i, n, S). It brings the partial sums over its
// own shards (of all its cores, in order); every partial sum's data is indexed like `out`, and only the elements
// [begin, end) are looked at. Which ways there are to do it:
//   owners              each member owns a range of elements (`owned`), gets all partial sums of it, sums them in the
//                       tree and sends the result to all. Any n and S. Every rank sends, for each tree node that its
//                       shards make up, what it does not own; then what it owns to n - 1 others.
//   direct              the same, reading the others' partial sums where they lie (Group::allocate), if all lie there.
//   recursive-doubling  only where the tree over ranks is the upper part of the tree over shards.
// The others add in another order: asking for one is BadInput. By default direct where there is shared memory, else
// owners.
//
// The two halves can be had separately, to update in between: reduce_scatter_shards, then all_gather_owned.
// Collective; throws PeerLost, Mismatch, TooLate. Allocates nothing once an operation of that size has been seen.

#include <cstddef>
#include <span>
#include <string_view>

#include "collective/all_reduce.h"
#include "collective/group.h"
#include "collective/shard_tree.h"
#include "collective/topology.h"

namespace echelon {

struct ShardSum {
  int shards = 1;
  std::span<const PartialSum> partials = {};  // this member's
  std::size_t begin = 0, end = 0;             // elements
  float* out = nullptr;                       // out[begin..end); may be the memory of one of the partial sums
};

// Every member gets the sum of all elements.
void all_reduce_shards(Group& group, const ShardSum& sum, const AllReduceOptions& how = {});

// The same where every member has one shard, in place: the sum over all members.
void all_reduce_members(Group& group, std::span<float> values);

// The elements of [begin, end) that member `index` of n owns: whole cache lines.
Range owned(int index, int n, std::size_t begin, std::size_t end);

// Every member gets the sum of the elements that it owns.
void reduce_scatter_shards(Group& group, const ShardSum& sum, std::string_view name = {});
// Every member has its own elements of data[begin..end) and gets the others.
void all_gather_owned(Group& group, float* data, std::size_t begin, std::size_t end, std::string_view name = {});

// What member `index` sends in all_reduce_shards by `owners`.
struct Traffic;
Traffic owners_shard_traffic(int index, int n, int shards, std::size_t elements);

}  // namespace echelon
