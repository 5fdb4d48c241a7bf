#pragma once
// Collectives that run while the rank does something else: a task of the world with a channel of its own that carries
// out what is handed to it, in order. All members hand the same operations to their lanes in the same order.
//
//   Lane lane(group);                                           // collective
//   Pending sum = lane.all_reduce(numbers(gradient), Reduction::sum, {.name = "bucket 7"});
//   ... compute ...
//   sum.wait(world.now() + 60);                                 // rethrows what went wrong
//
// The memory named there belongs to the operation until its Pending is done, the name until then too. When an operation
// fails, so do all after it. One task hands out operations; it, or whoever it gives them to, waits for them. Handing
// out allocates nothing; if `capacity` operations are under way it waits for the oldest. Destroying a lane finishes
// what was handed to it; while an exception unwinds, it gives the rank up instead, because the others may never come.

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

class Lane;

// An operation that was handed to a lane, which must outlive it. Copyable.
class Pending {
 public:
  Pending() = default;  // done
  // True when done; false at the deadline (of the world's clock). Rethrows what the operation threw.
  bool wait(double deadline) const;
  bool done() const;

 private:
  friend class Lane;
  Pending(Lane* lane, std::uint64_t number) : lane_(lane), number_(number) {}
  Lane* lane_ = nullptr;
  std::uint64_t number_ = 0;
};

class Lane {
 public:
  static constexpr std::size_t capacity = 64;

  explicit Lane(Group& group);  // collective: the members agree on a channel
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Any function of the lane's group: small and trivially copyable (capture spans and references).
  template <typename F>
  Pending start(const F& operation) {
    static_assert(sizeof(F) <= sizeof(Order::memory) && std::is_trivially_copyable_v<F>);
    Order& order = next_order();
    std::memcpy(order.memory.data(), &operation, sizeof(F));
    order.call = [](const std::byte* memory, Group& group) { (*reinterpret_cast<const F*>(memory))(group); };
    return submit();
  }

  Pending all_reduce(Numbers data, Reduction reduction, How how = {}) {
    return start([=](Group& g) { echelon::all_reduce(g, data, reduction, how); });
  }
  Pending reduce_scatter(Numbers data, Reduction reduction, std::string_view name = {}) {
    return start([=](Group& g) { echelon::reduce_scatter(g, data, reduction, name); });
  }
  Pending all_gather(ConstNumbers mine, Numbers all, std::string_view name = {}) {
    return start([=](Group& g) { echelon::all_gather(g, mine, all, name); });
  }
  Pending broadcast(Numbers data, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::broadcast(g, data, root, name); });
  }
  Pending reduce(Numbers data, Reduction reduction, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::reduce(g, data, reduction, root, name); });
  }
  Pending gather(ConstNumbers mine, Numbers all, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::gather(g, mine, all, root, name); });
  }
  Pending scatter(ConstNumbers all, Numbers mine, int root, std::string_view name = {}) {
    return start([=](Group& g) { echelon::scatter(g, all, mine, root, name); });
  }
  Pending all_to_all(ConstNumbers out, Numbers in, std::string_view name = {}) {
    return start([=](Group& g) { echelon::all_to_all(g, out, in, name); });
  }
  Pending barrier(std::string_view name = {}) {
    return start([=](Group& g) { echelon::barrier(g, name); });
  }

  // For its patience; do not use it while operations are under way.
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
