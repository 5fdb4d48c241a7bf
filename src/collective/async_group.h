#pragma once
// Collectives that run while the rank does something else: a duplicate of a group and a task of the world that carries
// out operations on it, in order. All members submit the same operations to their async groups in the same order.
//
//   AsyncGroup async(group);  // collective
//   Pending sum = async.start([=](Group& g) { all_reduce(g, gradient); });
//   ... compute ...
//   sum.wait(world.now() + 60);  // rethrows what went wrong
//
// Memory that an operation names belongs to the operation until its Pending is done. When an operation fails, all later
// ones fail with the same exception. One task submits operations; any task may wait for them. Submitting allocates
// nothing; if `capacity` operations are under way it waits for the oldest. The destructor waits until all submitted
// operations are done; while an exception unwinds it aborts the rank instead, because other members may never join
// them.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <type_traits>

#include "collective/group.h"

namespace echelon {

class AsyncGroup;

// An operation that was submitted to an async group, which must outlive it. Copyable.
class Pending {
 public:
  Pending() = default;  // done
  // True when done; false at the deadline (of the world's clock). Rethrows what the operation threw.
  bool wait(double deadline) const;
  bool done() const;

 private:
  friend class AsyncGroup;
  Pending(AsyncGroup* group, std::uint64_t number) : group_(group), number_(number) {}
  AsyncGroup* group_ = nullptr;
  std::uint64_t number_ = 0;
};

class AsyncGroup {
 public:
  static constexpr std::size_t capacity = 64;

  explicit AsyncGroup(Group& group);  // collective: duplicates the group
  ~AsyncGroup();
  AsyncGroup(const AsyncGroup&) = delete;
  AsyncGroup& operator=(const AsyncGroup&) = delete;

  // `operation(Group&)` is small and trivially copyable: capture spans and references.
  template <typename F>
  Pending start(const F& operation) {
    static_assert(sizeof(F) <= sizeof(Submission::memory) && std::is_trivially_copyable_v<F>);
    Submission& next = next_submission();
    std::memcpy(next.memory.data(), &operation, sizeof(F));
    next.run = [](const std::byte* memory, Group& group) { (*reinterpret_cast<const F*>(memory))(group); };
    return submit();
  }

  // The duplicate, for its wait policy; do not use it while operations are under way.
  Group& group() { return group_; }

 private:
  friend class Pending;
  struct Submission {
    alignas(std::max_align_t) std::array<std::byte, 128> memory;
    void (*run)(const std::byte* memory, Group& group) = nullptr;  // null: the task ends
  };

  Submission& next_submission();
  Pending submit();
  void work();

  Group group_;
  std::array<Submission, capacity> submissions_;
  std::uint64_t submitted_ = 0;          // operations, ever
  std::unique_ptr<Event> ready_, done_;  // count operations; they also make one task's writes visible to the other
  std::atomic<std::uint64_t> failed_from_{~std::uint64_t{0}};
  std::exception_ptr failure_;
  std::unique_ptr<Task> task_;
};

}  // namespace echelon
