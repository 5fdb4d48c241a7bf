// Direct: the data of all members lies in shared memory (Group::allocate). Each member combines one part of all copies
// into all copies, between two barriers: no messages, and every byte is read once and written once, by one core.
//   messages 0    barriers 2    bytes read and written by each member 2B
//   time 2 barriers + 2B of memory
//
// Data that lies elsewhere goes through a staging area in shared memory, chunk by chunk. Small data always does: each
// member reads all copies there and combines them for itself, which takes one barrier instead of two.

#include <algorithm>
#include <cstring>

#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/shared_memory/shared_view.h"

namespace echelon {

namespace {

constexpr std::size_t small_bytes = 1024;          // up to here a second barrier costs more than combining everything
constexpr std::size_t staging_bytes = 256 * 1024;  // per member: fits a core's own cache
constexpr std::size_t block_bytes = 8192;          // a few blocks fit the first-level cache

// Element i of all of `copies` becomes their combination, in order of members.
void combine_everywhere(std::span<std::byte* const> copies, ElementType type, Reduction reduction, Range range) {
  const std::size_t item = size_of(type), block = block_bytes / item;
  for (std::size_t at = range.begin; at < range.end; at += block) {
    const std::size_t n = std::min(block, range.end - at);
    std::byte* into = copies[0] + at * item;
    for (std::size_t m = 1; m < copies.size(); ++m) combine(type, reduction, into, into, copies[m] + at * item, n);
    if (reduction == Reduction::mean) divide(type, into, n, static_cast<int>(copies.size()));
    for (std::size_t m = 1; m < copies.size(); ++m) std::memcpy(copies[m] + at * item, into, n * item);
  }
}

// Where each member's copy lies in this process.
template <typename PointerOf>
std::span<std::byte*> copies_of_all(GroupState& state, const PointerOf& pointer_of) {
  state.pointers.resize(static_cast<std::size_t>(state.size()));
  for (int m = 0; m < state.size(); ++m) state.pointers[static_cast<std::size_t>(m)] = pointer_of(m);
  return state.pointers;
}

std::span<std::byte*> staged_copies(GroupState& state, std::size_t offset) {
  const SharedAddress address = state.shared_address(state.staging.subspan(offset));
  return copies_of_all(state, [&](int m) { return state.pointer_to(address, m); });
}

std::span<std::byte> staging_of(Group& group) {
  GroupState& state = group.state();
  if (state.staging.empty()) state.staging = group.allocate(staging_bytes + 2 * small_bytes);
  return state.staging;
}

void reduce_small(Group& group, TypedSpan data, Reduction reduction) {
  GroupState& state = group.state();
  // Two areas in turn: at the barrier of one operation all members have finished reading the area of the one before.
  const std::size_t area = staging_bytes + small_bytes * (state.small_operations++ % 2);
  std::byte* mine = staging_of(group).data() + area;
  if (data.count > 0) std::memcpy(mine, data.data, data.bytes());
  state.barrier();
  state.control->check_same_operation();
  const auto all = staged_copies(state, area);
  combine(data.type, reduction, data.data, all[0], all[1], data.count);
  for (std::size_t m = 2; m < all.size(); ++m) combine(data.type, reduction, data.data, data.data, all[m], data.count);
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, group.size());
}

void reduce_staged(Group& group, TypedSpan data, Reduction reduction) {
  GroupState& state = group.state();
  std::byte* mine = staging_of(group).data();
  const auto all = staged_copies(state, 0);
  const std::size_t item = size_of(data.type), chunk = staging_bytes / item;
  for (std::size_t at = 0; at < data.count; at += chunk) {
    const TypedSpan piece = data.part(at, std::min(chunk, data.count - at));
    std::memcpy(mine, piece.data, piece.bytes());
    state.barrier();
    combine_everywhere(all, data.type, reduction, part_of(group.index(), group.size(), piece.count, 64 / item));
    state.barrier();
    std::memcpy(piece.data, mine, piece.bytes());
  }
}

void run_direct(Group& group, TypedSpan data, Reduction reduction) {
  if (data.bytes() <= small_bytes) return reduce_small(group, data, reduction);
  GroupState& state = group.state();
  const SharedView view(group, data);
  if (!view) return reduce_staged(group, data, reduction);
  const auto all = copies_of_all(state, [&](int m) { return view.of(m).data; });
  combine_everywhere(all, data.type, reduction,
                     part_of(group.index(), group.size(), data.count, 64 / size_of(data.type)));
  view.leave();
}

MemberTraffic direct_traffic(const AllReduceShape&) { return {}; }

double direct_seconds(double bytes, int n, const LinkCosts& l) {
  if (bytes <= small_bytes) return l.barrier + bytes * (n + 1) * l.memory_per_byte;
  return 2 * l.barrier + 2 * bytes * l.memory_per_byte;
}

std::string_view why_not_direct(Group& group) {
  return group.size() == 1 || group.state().control ? "" : "the ranks have no memory in common";
}

}  // namespace

Algorithm direct_all_reduce() {
  return {.name = "direct",
          .about = "each member combines one part of all copies, in shared memory",
          .run = run_direct,
          .traffic = direct_traffic,
          .seconds = direct_seconds,
          .why_not = why_not_direct};
}

}  // namespace echelon
