#include "world/transport/first_failure.h"

#include <algorithm>

namespace echelon {

bool FirstFailure::set(int rank, std::string_view reason, FailureKind kind, bool writer_is_dead) {
  const auto claim = static_cast<std::uint32_t>(rank) + 1;
  std::uint32_t holder = 0;
  const bool first = claimed_.compare_exchange_strong(holder, claim, std::memory_order_acq_rel);
  if (!first && !(writer_is_dead && holder == claim && !known())) return false;
  rank_ = rank;
  kind_ = kind;
  length_ = static_cast<std::uint32_t>(std::min(reason.size(), sizeof text_));
  std::copy_n(reason.begin(), length_, text_);
  written_.store(1, std::memory_order_seq_cst);
  return true;
}

void FirstFailure::throw_peer_lost(const std::string& operation) const {
  throw PeerLost(rank_, reason(), operation, kind_);
}

void FirstFailure::throw_to_launcher() const {
  if (!known()) return;
  if (kind_ == FailureKind::bad_input) throw BadInput(reason());
  throw RankFailed(rank_, reason());
}

}  // namespace echelon
