#pragma once
// What can go wrong between ranks. All are `Failure`s: the run ends (resumable from its last checkpoint), exit code 1.

#include <string>

#include "base/error.h"

namespace echelon {

// A rank is gone (killed, unreachable, or it gave up), noticed during an operation.
class PeerLost : public Failure {
 public:
  // "rank 3 was lost (killed by signal 9) during all-reduce 7, step 2"
  PeerLost(int rank, const std::string& reason, const std::string& operation)
      : Failure("rank " + std::to_string(rank) + " was lost (" + reason + ") during " + operation),
        rank_(rank),
        reason_(reason),
        operation_(operation) {}
  int rank() const { return rank_; }
  const std::string& reason() const { return reason_; }
  const std::string& operation() const { return operation_; }

 private:
  int rank_;
  std::string reason_, operation_;
};

// Two ranks do different things: the message that came is not the one that was expected.
class Mismatch : public Failure {
  using Failure::Failure;
};

// A deadline has passed and there is no sign that anybody has gone.
class TooLate : public Failure {
  using Failure::Failure;
};

// A program that ran on several ranks failed; this is what the first of them said.
class RankFailed : public Failure {
 public:
  RankFailed(int rank, const std::string& text) : Failure("rank " + std::to_string(rank) + ": " + text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace echelon
