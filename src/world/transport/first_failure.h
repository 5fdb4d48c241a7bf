#pragma once
// The first failure of a job; later ones do not count. Every world keeps it here: in the memory that all ranks share,
// or in each rank's own. All zero means that nothing has failed, so it may lie in fresh shared memory.
//
// Thread-safe, also across processes.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "world/failure.h"

namespace echelon {

class FirstFailure {
 public:
  static constexpr std::size_t reason_bytes = 2028;  // longer reasons are cut

  bool known() const { return written_.load(std::memory_order_seq_cst) != 0; }

  // Records that `rank` failed, unless a failure is known already; true if this is the first. Whoever records one then
  // wakes those who wait. `writer_is_dead`: the rank may have died while it was recording this itself; then the record
  // is completed here.
  bool set(int rank, std::string_view reason, FailureKind kind = FailureKind::failure, bool writer_is_dead = false);

  // Only once it is known.
  int rank() const { return rank_; }
  FailureKind kind() const { return kind_; }
  std::string reason() const { return std::string(text_, length_); }
  [[noreturn]] void throw_peer_lost(const std::string& operation) const;  // PeerLost

  void throw_to_launcher() const;  // BadInput or RankFailed; nothing if no failure is known

 private:
  std::atomic<std::uint32_t> claimed_{0};  // 1 + the rank whose failure is being written
  std::atomic<std::uint32_t> written_{0};
  int rank_ = 0;
  FailureKind kind_ = FailureKind::failure;
  std::uint32_t length_ = 0;
  char text_[reason_bytes] = {};
};

}  // namespace echelon
