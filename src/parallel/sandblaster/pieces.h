#pragma once
// Who computes which piece of a batch: the coordinator on rank 0 hands out one at a time, so that a fast worker does
// more of them. When none is left, a worker that is free gets one that another still works on, and whoever is first
// counts; when all are done, the others are told to drop theirs.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/team/message_wait.h"
#include "world/mailbox/mailbox.h"

namespace echelon {

struct PieceResult {
  double loss = 0, correct = 0, terms = 0, samples = 0;
};

class Pieces {
 public:
  static constexpr int request_tag = 0, answer_tag = 1, over_tag = 2, gradient_tag = 3;

  // All ranks make one.
  Pieces(Team& team, Mailbox& mailbox, int pieces);
  ~Pieces();

  void begin(std::int64_t evaluation);  // all ranks, with the same number, each time a greater one
  std::optional<int> next();            // the piece to compute; none: all are done
  void done(int piece, const PieceResult& result);
  bool over();  // whether the piece that this worker has is not wanted any more
  // Rank 0, after next() had nothing more: each piece's, in order; and how often some were computed twice so far.
  std::vector<PieceResult> results() const;
  std::int64_t duplicates() const;
  std::vector<std::int64_t> done_by() const;  // rank 0: pieces of each worker that counted, so far

 private:
  class Coordinator;
  World& world_;
  Mailbox& mailbox_;
  MessageWait wait_policy_;
  std::unique_ptr<Coordinator> coordinator_;
  std::int64_t evaluation_ = 0;
  bool over_ = false;
};

}  // namespace echelon
