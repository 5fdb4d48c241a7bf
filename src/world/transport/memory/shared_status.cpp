#include "world/transport/memory/shared_status.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace echelon {

// The words are written with release and read with acquire, which is what keeps them between the two looks at the
// version without a fence.
void SharedStatus::write(const RankStatus& status) {
  std::array<std::uint64_t, text_words + 1> words{};
  words[0] = static_cast<std::uint64_t>(status.waiting_for + 1);
  std::memcpy(&words[1], status.activity.data(), std::min(status.activity.size(), RankStatus::activity_bytes));
  const std::uint32_t version = version_.load(std::memory_order_relaxed) & ~1u;
  version_.store(version + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

RankStatus SharedStatus::read() const {
  std::array<std::uint64_t, text_words + 2> words{};  // the last one stays zero: the end of the text
  // A writer that died in the middle leaves an odd version for ever: after many tries a torn status is better than
  // none.
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < words_.size(); ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    if (tries % 16 == 15) sched_yield();
  }
  return {.activity = reinterpret_cast<const char*>(&words[1]), .waiting_for = static_cast<Rank>(words[0]) - 1};
}

}  // namespace echelon
