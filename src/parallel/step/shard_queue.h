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
    int shard = -1;
    change(static_cast<std::size_t>(core), [&](int& first, int&) { shard = first++; });
    return shard;
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
      int shard = -1;
      change(victim, [&](int&, int& last) { shard = --last; });
      if (shard >= 0) return shard;
    }
  }

 private:
  static constexpr std::uint64_t pack(int first, int last) {
    return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(last);
  }
  static constexpr int first_of(std::uint64_t range) { return static_cast<int>(range >> 32); }
  static constexpr int last_of(std::uint64_t range) { return static_cast<int>(range & 0xffffffff); }

  template <typename F>
  void change(std::size_t core, const F& f) {
    std::uint64_t now = left_[core].range;
    int first, last;
    do {
      first = first_of(now), last = last_of(now);
      if (first >= last) return;
      f(first, last);
    } while (!left_[core].range.compare_exchange_weak(now, pack(first, last)));
  }

  struct alignas(64) Left {  // a cache line each
    std::atomic<std::uint64_t> range = 0;
  };
  std::vector<ShardRange> dealt_;
  std::vector<Left> left_;
};

}  // namespace echelon
