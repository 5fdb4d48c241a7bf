#pragma once
// The collectives besides all-reduce (all_reduce.h). All members of the group call the same one with the same sizes;
// the call returns when this member's part is done and its memory may be used again. With n members and B bytes in all
// (docs/collectives.md has the table):
//
//   broadcast       binomial tree, ceil(log2 n) steps; above 64 KiB (and 4 KiB a member) scattered, gathered in a ring
//   reduce          binomial tree; above 64 KiB reduced and scattered in a ring, then gathered
//   reduce_scatter  ring, n - 1 steps of B/n
//   all_gather      ring, n - 1 steps of one member's part; small parts of more than 64 members: gather, broadcast
//   gather, scatter one message per member, to or from the root
//   all_to_all      pairwise exchange, n - 1 steps of B/n
//   barrier         in shared memory, or dissemination, ceil(log2 n) steps of empty messages
//
// all_gather and reduce_scatter read data that lies in shared memory (Group::allocate) in place.
// `name` is for notices about late ranks. Throws PeerLost, Mismatch, TooLate: the group cannot be used any more then.

#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "collective/group.h"
#include "collective/topology.h"
#include "collective/typed_span.h"

namespace echelon {

void broadcast(Group& group, TypedSpan data, int root, std::string_view name = {});

// At the root `data` becomes the result; elsewhere it holds partial results afterwards.
void reduce(Group& group, TypedSpan data, Reduction reduction, int root, std::string_view name = {});

// Part i of `data` becomes the result at member i; the rest holds partial results. Without `parts`: part_of(i, n,
// count).
void reduce_scatter(Group& group, TypedSpan data, Reduction reduction, std::string_view name = {});
void reduce_scatter(Group& group, TypedSpan data, std::span<const Range> parts, Reduction reduction,
                    std::string_view name = {});

// `all` gets every member's `mine`, in order of members. `mine` may be its own part of `all`.
void all_gather(Group& group, ConstTypedSpan mine, TypedSpan all, std::string_view name = {});
// Parts of any sizes, in place: member i brings parts[i] and gets the others.
void all_gather(Group& group, TypedSpan all, std::span<const Range> parts, std::string_view name = {});

// One record of each member, in order of members: `all` has room for one per member. For small agreements (what each
// member measured, wants or has), whose fields then have names. All members run the same program, so a record travels
// as it lies in memory.
template <typename T>
void all_gather_struct(Group& group, const T& mine, std::type_identity_t<std::span<T>> all,
                       std::string_view name = {}) {
  static_assert(std::is_trivially_copyable_v<T>, "a record that travels as bytes holds no pointers and owns nothing");
  all_gather(group, const_typed_span(std::as_bytes(std::span(&mine, 1))), typed_span(std::as_writable_bytes(all)),
             name);
}
template <typename T>
std::vector<T> all_gather_struct(Group& group, const T& mine, std::string_view name = {}) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  all_gather_struct(group, mine, std::span(all), name);
  return all;
}

// `all` is used only at the root; it is as long as all members' data together.
void gather(Group& group, ConstTypedSpan mine, TypedSpan all, int root, std::string_view name = {});
void scatter(Group& group, ConstTypedSpan all, TypedSpan mine, int root, std::string_view name = {});

// Part i of `out` (of n equal ones) becomes the part of the sender in member i's `in`. Distinct memory.
void all_to_all(Group& group, ConstTypedSpan out, TypedSpan in, std::string_view name = {});
// Parts of any sizes, which both sides know: out_parts[i] goes to member i, in_parts[i] comes from it.
void all_to_all(Group& group, ConstTypedSpan out, std::span<const Range> out_parts, TypedSpan in,
                std::span<const Range> in_parts, std::string_view name = {});

// One message to a member and one from a member (-1: none); both sides know the sizes. All members call it, also those
// with nothing to send or receive. Distinct memory.
void send_receive(Group& group, int to, ConstTypedSpan out, int from, TypedSpan in, std::string_view name = {});

void barrier(Group& group, std::string_view name = {});

}  // namespace echelon
