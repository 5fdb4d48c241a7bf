#pragma once
// Whether a world is whole, in memory that all its ranks see: the first failure is written down here, once and for all,
// and everybody's waits end with it. Thread-safe, also across processes.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon {

enum class FailureKind : std::uint32_t { failure, bad_input };

// Lies in the segment. All zero: whole.
class SharedFailure {
 public:
  bool broken() const { return written_.load(std::memory_order_seq_cst) != 0; }

  // Writes the failure of `rank` down if it is the first; true if it was. (Who does so then rings everybody's wake_up.)
  // `writer_is_dead`: the rank may have died while it was writing here itself; finish it.
  bool break_world(int rank, FailureKind kind, std::string_view reason, bool writer_is_dead = false);

  // Only once broken.
  int rank() const { return rank_; }
  FailureKind kind() const { return kind_; }
  std::string reason() const { return std::string(text_, length_); }
  [[noreturn]] void throw_peer_lost(const std::string& operation) const;  // PeerLost
  void throw_to_launcher() const;  // BadInput or RankFailed if broken, nothing if whole

 private:
  std::atomic<std::uint32_t> claimed_{0};  // 1 + the rank that writes
  std::atomic<std::uint32_t> written_{0};
  int rank_ = 0;
  FailureKind kind_ = FailureKind::failure;
  std::uint32_t length_ = 0;
  char text_[2028] = {};
};

}  // namespace echelon
