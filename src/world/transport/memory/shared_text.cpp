#include "world/transport/memory/shared_text.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace echelon {

// The words are written with release and read with acquire, which is what keeps them between the two looks at the
// version without a fence.
void SharedText::write(std::string_view text) {
  std::array<std::uint64_t, 8> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), capacity));
  const std::uint32_t version = version_.load(std::memory_order_relaxed) & ~1u;
  version_.store(version + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

std::string SharedText::read() const {
  std::array<std::uint64_t, 8> words{};
  // A writer that died in the middle leaves an odd version for ever: after many tries a torn text is better than none.
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    if (tries % 16 == 15) sched_yield();
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words.data(), sizeof words);
  return text;
}

}  // namespace echelon
