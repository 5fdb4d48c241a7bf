#pragma once
// What can go wrong between ranks. All are `Failure`s: the run ends with exit code 1, resumable from its last
// checkpoint.

#include <cstdint>
#include <string>

#include "base/error.h"

namespace echelon {

// Who can cure the failure of a rank: `bad_input` ends the whole job as BadInput, whichever rank met it.
enum class FailureKind : std::uint32_t { failure, bad_input };

// A rank is lost (killed, unreachable, or it aborted the job), noticed during an operation.
class PeerLost : public Failure {
 public:
  // "rank 3 was lost (killed by signal 9) during all-reduce 7, step 2"
  PeerLost(int rank, const std::string& reason, const std::string& operation, FailureKind kind = FailureKind::failure)
      : Failure("rank " + std::to_string(rank) + " was lost (" + reason + ") during " + operation),
        rank_(rank),
        reason_(reason),
        operation_(operation),
        kind_(kind) {}
  int rank() const { return rank_; }
  FailureKind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  const std::string& operation() const { return operation_; }

 private:
  int rank_;
  std::string reason_, operation_;
  FailureKind kind_;
};

inline FailureKind kind_of(const std::exception& problem) {
  return dynamic_cast<const BadInput*>(&problem) ? FailureKind::bad_input : FailureKind::failure;
}

// Two ranks do different things: a message is not the one that its receiver expected.
class Mismatch : public Failure {
  using Failure::Failure;
};

// A deadline has passed, and no rank is known to be lost.
class TooLate : public Failure {
  using Failure::Failure;
};

// A program that ran on several ranks failed: the first failure, and its rank.
class RankFailed : public Failure {
 public:
  RankFailed(int rank, const std::string& text) : Failure("rank " + std::to_string(rank) + ": " + text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace echelon
