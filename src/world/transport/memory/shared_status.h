#pragma once
// The status of a rank in memory that all ranks see: its rank changes it often, others read it now and then, and
// neither waits for the other (a sequence lock over words). One writer at a time. All zero: nothing said yet.

#include <array>
#include <atomic>
#include <cstdint>

#include "world/rank_status.h"

namespace echelon {

class SharedStatus {
 public:
  void write(const RankStatus& status);
  RankStatus read() const;

 private:
  static constexpr std::size_t text_words = (RankStatus::activity_bytes + 8) / 8;

  std::atomic<std::uint32_t> version_{0};                           // odd while it is being written
  std::array<std::atomic<std::uint64_t>, text_words + 1> words_{};  // waiting_for + 1, then the activity
};

}  // namespace echelon
