#pragma once
// Sandblaster L-BFGS (Dean et al. 2012): steps on whole batches. Every rank is a worker and a server; rank 0 is the
// coordinator too. An evaluation of the loss at a point:
//
//   fetch       every worker has the point's weights from the servers            server_vectors.h
//   pieces    the coordinator hands out pieces of the batch, small ones       pieces.h
//   push        the gradient of a piece, cut up, to the servers, which keep the first one of each piece
//   sum         every server adds up its range, piece by piece in their order
//
// Between evaluations the coordinator runs L-BFGS (lbfgs.h) on vectors that stay on the servers. Weights are the same
// bits whoever computes which piece, and for any number of workers.

#include <memory>

#include "parallel/composition.h"
#include "parallel/engine.h"
#include "parallel/replica_state.h"
#include "parallel/sandblaster/lbfgs.h"
#include "parallel/sandblaster/pieces.h"
#include "parallel/sandblaster/server_vectors.h"
#include "parallel/step/local_trainer.h"

namespace echelon {

// What the rule lbfgs and the exchange coordinator say.
struct SandblasterSettings {
  LbfgsSettings lbfgs;
  int pieces = 32;
};

class SandblasterEngine final : public Engine {
 public:
  // `team` does not share memory; its world counts what is sent. Collective.
  SandblasterEngine(const EngineSettings& settings, const SandblasterSettings& sandblaster, Team& team);

  Reached run(const StepRange& range) override;
  const ParameterTable& table() const override { return trainer_.table(); }
  std::span<float> model() override { return model_.as<float>(); }
  void read_model() override { vectors_.fetch(Lbfgs::point, model_.as<float>()); }
  std::vector<StateSpan> state() override { return states_.all(); }
  void gather() override { states_.gather(own_state()); }
  void scatter() override;
  void adapt(data::LoaderOptions& options) const override;
  int working_ranks() const override { return world_.size(); }
  double flops_per_sample() override { return trainer_.flops_per_sample(); }
  void watch(Watch watch) override { trainer_.hooks().watch = std::move(watch); }
  RankTimes times() const override { return times_; }
  double bytes_sent() override;
  std::vector<Figure> figures() override;
  void close() override;

  static constexpr int shards_of_piece = 2;  // after each a worker may drop its piece

 private:
  std::vector<StateSpan> own_state();
  double evaluate(int at, int gradient);
  void compute_pieces();
  void push(int piece);
  void sum_pieces(int gradient);

  EngineSettings settings_;
  SandblasterSettings sandblaster_;
  Team& team_;
  World& world_;
  LocalTrainer trainer_;
  ServerVectors vectors_;
  Buffer model_, pieces_sum_;
  Mailbox mailbox_;
  Pieces pieces_;
  MessageWait wait_policy_;
  Lbfgs lbfgs_;  // rank 0 uses it
  ReplicaState states_;
  const StepRange* range_ = nullptr;  // of the steps that are under way
  std::int64_t step_ = 0, evaluation_ = 0;
  double correct_ = 0, terms_ = 0, samples_ = 0, evaluations_ = 0,
         steps_ = 0;  // rank 0: of the last evaluation, and since the start
  RankTimes times_;
  double sent_ = 0;
};

}  // namespace echelon
