#include "graph/passes/memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "tensor/buffer.h"

namespace echelon {

namespace {

constexpr int forever = std::numeric_limits<int>::max();

// A piece of memory that one or several values use one after the other (in place) or at once (views).
struct Storage {
  std::size_t bytes = 0;
  int first = forever, last = -1;  // the nodes between which it is alive
  Placement place;
};

// Puts storages into their home, the largest first, each at the lowest offset that is free during its whole life.
std::size_t place_at_home(std::vector<Storage>& storages, Placement::Home home, bool reuse) {
  std::vector<std::size_t> order(storages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return storages[a].bytes > storages[b].bytes; });

  std::size_t top = 0;
  std::vector<const Storage*> placed;  // by offset
  for (std::size_t index : order) {
    Storage& s = storages[index];
    if (s.place.home != home) continue;
    std::size_t offset = 0;
    if (reuse) {
      for (const Storage* other : placed) {
        if (other->last < s.first || s.last < other->first) continue;  // never alive together
        if (other->place.offset >= offset + aligned(s.bytes)) break;   // the gap before it is large enough
        offset = std::max(offset, other->place.offset + aligned(other->bytes));
      }
    } else {
      offset = top;
    }
    s.place.offset = offset;
    top = std::max(top, offset + aligned(s.bytes));
    placed.insert(std::ranges::upper_bound(placed, offset, {}, [](const Storage* o) { return o->place.offset; }), &s);
  }
  return top;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, bool reuse, std::span<const std::size_t> parts) {
  const auto& nodes = graph.nodes();
  const auto values = static_cast<std::size_t>(graph.values());
  auto id = [](Value v) { return static_cast<std::size_t>(v.id); };

  // When each value is read last. What the outside reads after the run lives for ever.
  std::vector<int> last_use(values, -1);
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (Value v : nodes[n].in) last_use[id(v)] = static_cast<int>(n);
  for (const auto& [name, v] : graph.outputs()) last_use[id(v)] = forever;
  for (Value v : graph.contributions())
    if (v) last_use[id(v)] = forever;
  for (const auto& c : graph.carries()) last_use[id(c.to)] = forever;

  std::vector<Storage> storages;
  std::vector<int> storage_of(values, -1);
  auto live = [&](Value v, int from) {  // the value joins its storage's life
    Storage& s = storages[static_cast<std::size_t>(storage_of[id(v)])];
    s.first = std::min(s.first, from);
    s.last = std::max({s.last, from, last_use[id(v)]});
    s.bytes = std::max(s.bytes, graph.type(v).bytes());
  };
  auto new_storage = [&](Value v, Placement place, int from) {
    storage_of[id(v)] = static_cast<int>(storages.size());
    storages.push_back({.place = place});
    live(v, from);
  };

  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    new_storage(graph.parameter_value(i), {Placement::Home::parameter, i}, -1);
  for (const auto& input : graph.inputs()) new_storage(input.value, {Placement::Home::arena}, -1);
  for (std::size_t i = 0; i < graph.contributions().size(); ++i)
    if (const Value c = graph.contributions()[i]) new_storage(c, {Placement::Home::contribution, i}, 0);

  std::vector<std::size_t> scratch_storage(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    const int now = static_cast<int>(n);
    for (std::size_t o = 0; o < node.out.size(); ++o) {
      const Value v = node.out[o];
      if (storage_of[id(v)] >= 0) continue;  // a contribution: has its place already
      int shared = -1;
      if (node.op->is_view()) {
        shared = storage_of[id(node.in[0])];
      } else if (const int i = node.op->overwrites(static_cast<int>(o)); reuse && i >= 0) {
        const Value over = node.in[static_cast<std::size_t>(i)];
        const Storage& s = storages[static_cast<std::size_t>(storage_of[id(over)])];
        const bool dies_here = s.place.home == Placement::Home::arena && s.last == now;
        const auto readers =
            std::ranges::count_if(node.in, [&](Value in) { return storage_of[id(in)] == storage_of[id(over)]; });
        const bool free_yet = std::ranges::none_of(
            std::span(node.out).first(o), [&](Value before) { return storage_of[id(before)] == storage_of[id(over)]; });
        if (dies_here && readers == 1 && free_yet && graph.type(over).bytes() == graph.type(v).bytes())
          shared = storage_of[id(over)];
      }
      if (shared >= 0) {
        storage_of[id(v)] = shared;
        live(v, now);
      } else {
        new_storage(v, {Placement::Home::arena}, now);
      }
    }
    const std::size_t scratch = node.op->scratch_bytes(graph.types(node.in), graph.types(node.out));
    scratch_storage[n] = storages.size();
    storages.push_back({scratch, now, now, {scratch ? Placement::Home::arena : Placement::Home::nowhere}});
  }

  for (Storage& s : storages)
    if (s.place.home == Placement::Home::arena && std::ranges::any_of(parts, [&](std::size_t part) {
          return s.first < static_cast<int>(part) && s.last >= static_cast<int>(part);
        }))
      s.place.home = Placement::Home::kept;

  MemoryPlan plan;
  plan.arena_bytes = place_at_home(storages, Placement::Home::arena, reuse);
  plan.kept_bytes = place_at_home(storages, Placement::Home::kept, reuse);
  plan.values.resize(values);
  for (std::size_t v = 0; v < values; ++v)
    if (storage_of[v] >= 0) plan.values[v] = storages[static_cast<std::size_t>(storage_of[v])].place;
  for (std::size_t n = 0; n < nodes.size(); ++n) plan.scratch.push_back(storages[scratch_storage[n]].place.offset);
  return plan;
}

}  // namespace echelon
