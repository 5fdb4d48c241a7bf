#pragma once
// Collectives that run while the rank does something else: a task of the world with a channel of its own that carries
// out what is handed to it, in order. All members hand the same operations to their async groups in the same order.
//
//   AsyncGroup async_group(group);                                           // collective
//   Pending sum = async_group.all_reduce(typed_span(gradient), Reduction::sum, {.name = "bucket 7"});
//   ... compute ...
//   sum.wait(world.now() + 60);                                 // rethrows what went wrong
//
// The memory named there belongs to the operation until its Pending is done, the name until then too. When an operation
// fails, so do all after it. One task hands out operations; it, or whoever it gives them to, waits for them. Handing
// out allocates nothing; if `capacity` operations are under way it waits for the oldest. Destroying a async_group
// finishes what was handed to it; while an exception unwinds, it gives the rank up instead, because the others may
// never come.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <type_traits>

#include "collective/all_reduce.h"
#include "collective/collectives.h"
#include "collective/group.h"

namespace echelon {

class AsyncGroup;

// An operation that was handed to a async_group, which must outlive it. Copyable.
class Pending {
 public:
  Pending() = default;  // done
  // True when done; false at the deadline (of the world's clock). Rethrows what the operation threw.
  bool wait(double deadline) const;
  bool done() const;

 private:
  friend class AsyncGroup;
  Pending(AsyncGroup* async_group, std::uint64_t number) : async_group_(async_group), number_(number) {}
  AsyncGroup* async_group_ = nullptr;
  std::uint64_t number_ = 0;
};

class AsyncGroup {
 public:
  static constexpr std::size_t capacity = 64;

  explicit AsyncGroup(Group& group);  // collective: the members agree on a channel
  ~AsyncGroup();
  AsyncGroup(const AsyncGroup&) = delete;
  AsyncGroup& operator=(const AsyncGroup&) = delete;

  // Any function of the async_group's group: small and trivially copyable (capture spans and references).
  template <typename F>
  Pending start(const F& operation) {
    static_assert(sizeof(F) <= sizeof(Order::memory) && std::is_trivially_copyable_v<F>);
    Order& order = next_order();
    std::memcpy(order.memory.data(), &operation, sizeof(F));
    order.call = [](const std::byte* memory, Group& group) { (*reinterpret_cast<const F*>(memory))(group); };
    return submit();
  }

  Pending all_reduce(TypedSpan data, Reduction reduction, AllReduceOptions how = {}) {
    return start([=](Group& g) { echelon::all_reduce(g, data, reduction, how); });
  }
  Pending reduce_scatter(TypedSpan data, Reduction reduction, std::string_view name = {}) {
    return start([=](Group& g) { echelon::reduce_scatter(g, data, reduction, name); });
  }
  Pending all_gather(ConstTypedSpan mine, TypedSpan all, std::string_view name = {}) {
    return start([=](Group& g) { echelon::all_gather(g, mine, all, name); });
  }
  Pending broadcast(TypedSpan data, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::broadcast(g, data, root, name); });
  }
  Pending reduce(TypedSpan data, Reduction reduction, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::reduce(g, data, reduction, root, name); });
  }
  Pending gather(ConstTypedSpan mine, TypedSpan all, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::gather(g, mine, all, root, name); });
  }
  Pending scatter(ConstTypedSpan all, TypedSpan mine, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::scatter(g, all, mine, root, name); });
  }
  Pending all_to_all(ConstTypedSpan out, TypedSpan in, std::string_view name = {}) {
    return start([=](Group& g) { echelon::all_to_all(g, out, in, name); });
  }
  Pending barrier(std::string_view name = {}) {
    return start([=](Group& g) { echelon::barrier(g, name); });
  }

  // For its wait_policy; do not use it while operations are under way.
  Group& group() { return group_; }

 private:
  friend class Pending;
  struct Order {
    alignas(std::max_align_t) std::array<std::byte, 128> memory;
    void (*call)(const std::byte* memory, Group& group) = nullptr;
  };

  Order& next_order();
  Pending submit();
  void work();

  Group group_;
  std::array<Order, capacity> orders_;
  std::uint64_t handed_ = 0;               // operations, ever
  std::unique_ptr<Event> ordered_, done_;  // count operations; also what makes one task's writes seen by the other
  std::atomic<std::uint64_t> failed_from_{~std::uint64_t{0}};
  std::exception_ptr failure_;
  std::unique_ptr<Task> task_;
};

}  // namespace echelon
