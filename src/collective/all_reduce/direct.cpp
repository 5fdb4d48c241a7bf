// Direct: all members' numbers lie in memory that all see (Group::allocate). Each combines one part of all copies into
// all copies, between two meetings: no message, no copy, every byte is read once and written once, by one core.
//   messages 0    meetings 2    bytes read and written by each 2B
//   time 2 meetings + 2B touched
//
// TypedSpan that lie elsewhere go through a staging area in shared memory, chunk by chunk. Small ones go through it in
// any case: each member reads all copies there and combines them for itself, which takes one meeting instead of two.

#include <algorithm>
#include <cstring>

#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/shared_view.h"

namespace echelon {

namespace {

constexpr std::size_t small_bytes = 1024;          // below, a second meeting costs more than combining everything
constexpr std::size_t staging_bytes = 256 * 1024;  // of a member: fits a core's own cache
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

// Where each member's copy lies, as seen from here.
template <typename Find>
std::span<std::byte*> copies(GroupState& state, const Find& find) {
  state.pointers.resize(static_cast<std::size_t>(state.size()));
  for (int m = 0; m < state.size(); ++m) state.pointers[static_cast<std::size_t>(m)] = find(m);
  return state.pointers;
}

std::span<std::byte> staging_of(Group& group) {
  GroupState& state = group.state();
  if (state.staging.empty()) state.staging = group.allocate(staging_bytes + 2 * small_bytes);
  return state.staging;
}

void small(Group& group, TypedSpan data, Reduction reduction) {
  GroupState& state = group.state();
  // Two areas in turn: when a member comes back to the first, all have left the second, hence the first before.
  const std::size_t area = staging_bytes + small_bytes * (state.small_operations++ % 2);
  std::byte* mine = staging_of(group).data() + area;
  if (data.count > 0) std::memcpy(mine, data.data, data.bytes());
  state.meeting->meet(state.wait_policy);
  state.meeting->compare();
  const SharedPlace place = state.staging_place(area);
  const auto all = copies(state, [&](int m) { return state.see(place, m); });
  if (all.size() == 2) {
    combine(data.type, reduction, data.data, all[0], all[1], data.count);
  } else {
    combine(data.type, reduction, data.data, all[0], all[1], data.count);
    for (std::size_t m = 2; m < all.size(); ++m)
      combine(data.type, reduction, data.data, data.data, all[m], data.count);
  }
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, group.size());
}

void staged(Group& group, TypedSpan data, Reduction reduction) {
  GroupState& state = group.state();
  std::byte* mine = staging_of(group).data();
  const SharedPlace place = state.staging_place(0);
  const auto all = copies(state, [&](int m) { return state.see(place, m); });
  const std::size_t item = size_of(data.type), chunk = staging_bytes / item;
  for (std::size_t at = 0; at < data.count; at += chunk) {
    const TypedSpan piece = data.part(at, std::min(chunk, data.count - at));
    std::memcpy(mine, piece.data, piece.bytes());
    state.meeting->meet(state.wait_policy);
    combine_everywhere(all, data.type, reduction, part_of(group.index(), group.size(), piece.count, 64 / item));
    state.meeting->meet(state.wait_policy);
    std::memcpy(piece.data, mine, piece.bytes());
  }
}

void run(Group& group, TypedSpan data, Reduction reduction) {
  if (data.bytes() <= small_bytes) return small(group, data, reduction);
  GroupState& state = group.state();
  const SharedView view(group, data);
  if (!view) return staged(group, data, reduction);
  const auto all = copies(state, [&](int m) { return view.of(m).data; });
  combine_everywhere(all, data.type, reduction,
                     part_of(group.index(), group.size(), data.count, 64 / size_of(data.type)));
  view.leave();
}

Traffic traffic(const TrafficQuery&) { return {}; }

double seconds(double bytes, int n, const Link& l) {
  if (bytes <= small_bytes) return l.meet + bytes * (n + 1) * l.touch_per_byte;
  return 2 * l.meet + 2 * bytes * l.touch_per_byte;
}

std::string_view refuses(Group& group) {
  return group.size() == 1 || group.state().meeting ? "" : "the ranks have no memory in common";
}

bool fixed_tree(int, int) { return true; }

}  // namespace

const Algorithm direct_all_reduce{.name = "direct",
                                  .about = "each member combines one part of all copies, in shared memory",
                                  .run = run,
                                  .traffic = traffic,
                                  .seconds = seconds,
                                  .refuses = refuses,
                                  .fixed_tree = fixed_tree};

}  // namespace echelon
