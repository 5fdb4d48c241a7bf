#pragma once
// The first failure of a job, as far as this rank knows; what comes later does not count. Thread-safe.

#include <atomic>
#include <mutex>
#include <string>

#include "world/failure.h"

namespace echelon {

class FirstFailure {
 public:
  bool set(int rank, const std::string& reason) {  // true if it is the first
    const std::lock_guard lock(mutex_);
    if (known_.load(std::memory_order_relaxed)) return false;
    rank_ = rank;
    reason_ = reason;
    known_.store(true, std::memory_order_release);
    return true;
  }
  bool known() const { return known_.load(std::memory_order_acquire); }
  int rank() const { return rank_; }  // once it is known
  const std::string& reason() const { return reason_; }
  [[noreturn]] void throw_peer_lost(const std::string& operation) const { throw PeerLost(rank_, reason_, operation); }

 private:
  std::mutex mutex_;
  std::atomic<bool> known_ = false;
  int rank_ = -1;
  std::string reason_;
};

}  // namespace echelon
