#pragma once
// Exact training whose workers check each other (--check-replicas N). Every worker has weights of its own. After every
// N steps, and wherever the ranks meet anyway, the hashes of all weights and states are compared. The last of N steps
// is computed a second time from the same weights, every shard by another worker than before, and has to come to the
// same hash: so a bit that changed in a worker's memory is found within N steps whatever it was part of, and wrong
// arithmetic if it happened in a step that was computed twice.
//
// Who was wrong nobody can tell from two different answers. So the steps are done again from the last state on which
// all agreed, and once that has come to an agreed end, the first step at which somebody's contribution had been another
// one names the culprit.
//
// All ranks make one and call the same functions at the same steps.

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/loader.h"
#include "parallel/engine.h"
#include "parallel/step/bit_flip.h"

namespace echelon {

struct ReplicaCheckOptions {
  std::int64_t every = 0;           // steps; 0: nothing is checked
  std::vector<BitFlip> flips = {};  // experiments
  std::string doubt = {};  // what came before the steps were begun again: ReplicaCheck::doubt(); empty: nothing
};

class ReplicaCheck {
 public:
  // What one rank has seen, of steps after the state on which all agreed.
  struct Evidence {
    std::uint64_t weights = 0, again = 0;  // hashes after the last step, and after that step was computed once more
    std::uint32_t recomputed = 0;          // of this rank's contribution to that
    std::int32_t has_again = 0;            // the last step was computed twice
  };

  // `second` trains the same on `second_team`, in which every rank has the shards of another one.
  ReplicaCheck(ReplicaCheckOptions options, Engine& engine, Team& team, std::unique_ptr<World> second_world,
               std::unique_ptr<Team> second_team, std::unique_ptr<Engine> second, std::unique_ptr<data::Loader> loader);
  ~ReplicaCheck();

  std::int64_t every() const { return options_.every; }
  // Before the step that will be computed twice (counted from 0): takes a copy.
  bool copies_before(std::int64_t step) const { return (step + 1) % options_.every == 0; }
  void copy();                        // collective
  void note_step(std::int64_t step);  // that is done, counted from 1: remembers this rank's contribution
  // After step `range.to`, of which `range.from` is the last if it is to be computed twice. True: all agree.
  // Collective.
  bool agree(std::int64_t step, const StepRange& last);
  // After agree() at the step at which there was none before: who was wrong; -1: nobody can tell. The same on all
  // ranks.
  bool has_doubt_of(std::int64_t step) const { return doubted_step_ == step; }
  Rank culprit();
  // After agree() was false: what the ranks know, for whoever does the steps again. The same on all ranks.
  const std::string& doubt() const { return new_doubt_; }
  std::string who_differs() const;  // "rank 1 holds other weights than the others"

 private:
  std::uint64_t hash(Engine& engine) const;
  void collect(std::int64_t step);

  const ReplicaCheckOptions options_;
  Engine& engine_;
  Team& team_;
  const std::unique_ptr<World> second_world_;
  const std::unique_ptr<Team> second_team_;
  const std::unique_ptr<Engine> second_;
  const std::unique_ptr<data::Loader> loader_;
  std::vector<std::uint32_t> contributions_;  // of this rank, in the steps since the last agreement
  std::vector<Evidence> evidence_;            // of all ranks
  std::vector<std::uint32_t> all_;            // contributions of all ranks, by rank
  bool copied_ = false;
  std::int64_t doubted_step_ = -1;
  Json doubted_;
  std::string new_doubt_;
};

// The culprit, from what was seen before (`was`) and after; pure. Both as doubt() has them. -1: nobody can tell.
int find_culprit(const Json& was, const Json& truth);

}  // namespace echelon
