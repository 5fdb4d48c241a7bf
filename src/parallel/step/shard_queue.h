#pragma once
// Who runs which logical shard of a step. Every core is dealt neighbours and takes them from the front; a core that is
// done takes over the last one of the core that has most left. Any core may call take and take_over at any time.

#include <atomic>
#include <vector>

#include "collective/shard_tree.h"

namespace echelon {

class ShardQueue {
 public:
  explicit ShardQueue(std::vector<ShardRange> dealt) : dealt_(std::move(dealt)), left_(dealt_.size()) {}

  void start_step() {
    for (std::size_t c = 0; c < dealt_.size(); ++c) left_[c].range = pack(dealt_[c].first, dealt_[c].last);
  }
  // The next one of the core's own shards; -1: none is left.
  int take(int core) {
    return change(static_cast<std::size_t>(core), [](int& first, int&) { return first++; });
  }
  // A shard of another core; -1: none is left.
  int take_over() {
    for (;;) {
      std::size_t victim = 0;
      int most = 0;
      for (std::size_t c = 0; c < left_.size(); ++c)
        if (const std::uint64_t now = left_[c].range; last_of(now) - first_of(now) > most)
          victim = c, most = last_of(now) - first_of(now);
      if (most == 0) return -1;
      if (const int shard = change(victim, [](int&, int& last) { return --last; }); shard >= 0) return shard;
    }
  }

 private:
  static constexpr std::uint64_t pack(int first, int last) {
    return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(last);
  }
  static constexpr int first_of(std::uint64_t range) { return static_cast<int>(range >> 32); }
  static constexpr int last_of(std::uint64_t range) { return static_cast<int>(range & 0xffffffff); }

  // What `f` takes from the core's range; -1: it is empty, perhaps because another core has just taken the last one.
  template <typename F>
  int change(std::size_t core, const F& f) {
    for (std::uint64_t now = left_[core].range;;) {
      int first = first_of(now), last = last_of(now);
      if (first >= last) return -1;
      const int shard = f(first, last);
      if (left_[core].range.compare_exchange_weak(now, pack(first, last))) return shard;
    }
  }

  struct alignas(64) Left {  // a cache line each
    std::atomic<std::uint64_t> range = 0;
  };
  std::vector<ShardRange> dealt_;
  std::vector<Left> left_;
};

}  // namespace echelon
