#pragma once
// How a worker's own last steps have moved its copy of the weights. Parameters that come without being asked for may
// have left the server before the worker's last pushes got there; what those had moved is added again, so that a worker
// always sees its own writes.

#include <cstdint>
#include <deque>

#include "kernels/vector.h"
#include "tensor/buffer.h"

namespace echelon::exchanges {

class OpLog {
 public:
  void begin(std::span<const float> weights) {  // of a step
    if (before_.bytes() == 0) before_ = Buffer(weights.size_bytes());
    kernels::copy(before_.as<float>().data(), weights.data(), weights.size());
  }
  void end(std::int64_t clock, std::span<const float> weights) {
    Entry e;
    if (!free_.empty()) e = std::move(free_.back()), free_.pop_back();
    if (e.moved.bytes() == 0) e.moved = Buffer(weights.size_bytes());
    e.clock = clock;
    const std::span<float> moved = e.moved.as<float>();
    const std::span<const float> before = before_.as<float>();
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = weights[i] - before[i];
    entries_.push_back(std::move(e));
  }
  // weights[begin, begin + count) += what the steps from `clock` on have moved
  void redo(std::int64_t clock, std::size_t begin, std::size_t count, std::span<float> weights) const {
    for (const Entry& e : entries_)
      if (e.clock >= clock) kernels::add_into(weights.data() + begin, e.moved.as<float>().data() + begin, count);
  }
  void forget_before(std::int64_t clock) {
    for (; !entries_.empty() && entries_.front().clock < clock; entries_.pop_front())
      free_.push_back(std::move(entries_.front()));
  }

 private:
  struct Entry {
    std::int64_t clock = 0;
    Buffer moved;
  };
  Buffer before_;
  std::deque<Entry> entries_;
  std::deque<Entry> free_;
};

}  // namespace echelon::exchanges
