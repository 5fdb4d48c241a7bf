#include "world/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "world/sim/sanitizers.h"

namespace echelon::sim {

namespace context = boost::context;

StackPool::StackPool(std::size_t bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  bytes_ = (bytes + page_ - 1) / page_ * page_ + page_;  // and the guard
}

StackPool::~StackPool() {
  for (void* stack : mapped_) munmap(stack, bytes_);
}

context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* bottom = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bottom == MAP_FAILED || mprotect(bottom, page_, PROT_NONE) != 0) {
    const int error = errno;
    if (bottom != MAP_FAILED) munmap(bottom, bytes_);
    fail(
        "no room for fiber {} and its stack of {} bytes: {}. Take smaller stacks or fewer ranks; the limit on the "
        "number of maps is sysctl vm.max_map_count (two for each stack)",
        mapped_.size() + 1, bytes_, std::strerror(error));
  }
  mapped_.push_back(bottom);
  context::stack_context stack;
  stack.size = bytes_ - page_;
  stack.sp = static_cast<char*>(bottom) + bytes_;
  return stack;
}

void StackPool::give(const context::stack_context& stack) { free_.push_back(stack); }

namespace {

// The stack is ours before and after: Boost has nothing to allocate or to free.
struct KeepStack {
  context::stack_context allocate() { return {}; }
  void deallocate(context::stack_context&) {}
};

const void* bottom(const context::stack_context& stack) { return static_cast<char*>(stack.sp) - stack.size; }

}  // namespace

Fiber::Fiber(StackPool& pool, std::function<void()> body) : pool_(pool), body_(std::move(body)), stack_(pool.take()) {
  sanitizers::fresh_stack(bottom(stack_), stack_.size);
  sanitizer_.tsan_fiber = sanitizers::create_fiber();
  inner_ = context::fiber(std::allocator_arg, context::preallocated(stack_.sp, stack_.size, stack_), KeepStack{},
                          [this](context::fiber&& outer) {
                            sanitizers::enter_stack(nullptr, &sanitizer_.outer_stack, &sanitizer_.outer_bytes);
                            outer_ = std::move(outer);
                            body_();
                            ended_ = true;
                            sanitizers::leave_stack(nullptr, sanitizer_.outer_stack, sanitizer_.outer_bytes);
                            sanitizers::switch_to(sanitizer_.tsan_outer);
                            return std::move(outer_);
                          });
}

Fiber::~Fiber() { invariant(ended_, "a fiber ends before it is destroyed"); }

// __cxa_get_globals gives this thread's list of caught exceptions and count of uncaught ones. A fiber that waits inside
// a handler, or in a destructor while an exception passes, must find its own again.
void Fiber::swap_exceptions(Exceptions& mine) {
  auto* globals = reinterpret_cast<char*>(abi::__cxa_get_globals());
  Exceptions theirs;
  std::memcpy(&theirs.caught, globals, sizeof theirs.caught);
  std::memcpy(&theirs.uncaught, globals + sizeof theirs.caught, sizeof theirs.uncaught);
  std::memcpy(globals, &mine.caught, sizeof mine.caught);
  std::memcpy(globals + sizeof mine.caught, &mine.uncaught, sizeof mine.uncaught);
  mine = theirs;
}

void Fiber::run() {
  void* fake_stack = nullptr;
  swap_exceptions(exceptions_);
  sanitizer_.tsan_outer = sanitizers::current_fiber();
  sanitizers::leave_stack(&fake_stack, bottom(stack_), stack_.size);
  sanitizers::switch_to(sanitizer_.tsan_fiber);
  inner_ = std::move(inner_).resume();
  sanitizers::enter_stack(fake_stack, nullptr, nullptr);
  swap_exceptions(exceptions_);
  if (!ended_) return;
  sanitizers::destroy_fiber(sanitizer_.tsan_fiber);
  pool_.give(stack_);
}

void Fiber::suspend() {
  sanitizers::leave_stack(&sanitizer_.fake_stack, sanitizer_.outer_stack, sanitizer_.outer_bytes);
  sanitizers::switch_to(sanitizer_.tsan_outer);
  outer_ = std::move(outer_).resume();
  sanitizers::enter_stack(sanitizer_.fake_stack, &sanitizer_.outer_stack, &sanitizer_.outer_bytes);
}

}  // namespace echelon::sim
