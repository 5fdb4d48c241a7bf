#pragma once
// A function that can stop in the middle and go on later, on a stack of its own, within one thread. Built on
// Boost.Context; what we add are stacks that are only as expensive as they are deep (pages are taken when touched, a
// guard page below each turns an overflow into a crash at once), each fiber's own chain of exceptions in flight, and
// the annotations that AddressSanitizer and ThreadSanitizer need.
//
// Not thread-safe: fibers and their pool belong to one thread. A fiber must have ended before it is destroyed.

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace echelon::sim {

class StackPool {
 public:
  explicit StackPool(std::size_t bytes);  // of each stack, rounded up to pages
  ~StackPool();
  StackPool(const StackPool&) = delete;

  boost::context::stack_context take();  // throws Failure if the system has no room for another
  void give(const boost::context::stack_context& stack);

 private:
  std::size_t bytes_, page_;
  std::vector<boost::context::stack_context> free_;
  std::vector<void*> mapped_;
};

class Fiber {
 public:
  // The body must not throw.
  Fiber(StackPool& pool, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;

  void run();      // by the scheduler: until the fiber suspends itself or ends
  void suspend();  // by the fiber: back to where `run` was called
  bool ended() const { return ended_; }

 private:
  struct Sanitizer {  // what the sanitizers want back at the next switch
    void* fake_stack = nullptr;
    const void* outer_stack = nullptr;
    std::size_t outer_bytes = 0;
    void* tsan_fiber = nullptr;
    void* tsan_outer = nullptr;
  };
  struct Exceptions {  // as the C++ run-time library keeps them for each thread
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static void swap_exceptions(Exceptions& mine);

  StackPool& pool_;
  std::function<void()> body_;
  boost::context::stack_context stack_;
  boost::context::fiber inner_, outer_;
  Sanitizer sanitizer_;
  Exceptions exceptions_;
  bool ended_ = false;
};

}  // namespace echelon::sim
