#pragma once
// A send or receive that has begun. Move-only. Wait for it before it is destroyed and before the memory that it names
// is used again (an exception from wait() ends the use of the memory): the destructor does not wait.

#include <utility>

namespace echelon {

// The world's side of it, from a pool of the world: starting and finishing a Work allocates nothing.
class Operation {
 public:
  // True when done; false if the deadline (of the world's clock) came first. Throws PeerLost or Mismatch.
  virtual bool wait(double deadline) = 0;
  // Whether `wait` would return true or throw at once. Never waits, and makes no progress.
  virtual bool finished() = 0;
  virtual void release() = 0;  // back to the pool

 protected:
  ~Operation() = default;
};

class Work {
 public:
  Work() = default;  // done
  explicit Work(Operation* operation) : operation_(operation) {}
  Work(Work&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
  Work& operator=(Work&& other) noexcept {
    std::swap(operation_, other.operation_);
    return *this;
  }
  ~Work() {
    if (operation_) operation_->release();
  }

  bool done() const { return operation_ == nullptr; }
  // Whether `wait` has nothing to wait for: asking costs next to nothing, and no time in a simulated world.
  bool finished() const { return operation_ == nullptr || operation_->finished(); }
  Operation* operation() const { return operation_; }  // null: done
  // True when the message has been sent or has arrived; false at the deadline.
  bool wait(double deadline) {
    if (operation_ && !operation_->wait(deadline)) return false;
    if (Operation* finished = std::exchange(operation_, nullptr)) finished->release();
    return true;
  }

 private:
  Operation* operation_ = nullptr;
};

}  // namespace echelon
