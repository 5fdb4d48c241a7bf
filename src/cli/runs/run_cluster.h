#pragma once
// cluster.json of a run with several workers: host, process and cores of each, and the plan where the model is split
// (cli/training/predicted_plan.h), written at the start; while it goes on, every few seconds, what each is doing, and
// at each evaluation the bytes that each has sent to each (up to most_peers_counted workers); at the end those again,
// and what the links between them cost, as measured, of few workers of every pair (collective/link_costs.h). If the
// run fails: which rank did, and why. All ranks make one; one of them writes.
//
// Of a simulation only what costs no simulated time before its end: its time must not depend on who looks, and its
// links are in its file.

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "collective/link_costs.h"
#include "parallel/team/team.h"
#include "run/events.h"
#include "track/run.h"
#include "world/os/clock.h"

namespace echelon::cli {

class RunCluster : public RunListener {
 public:
  // `plan`: null if every worker has the whole model; only rank 0's counts. `clock`: of people. Collective.
  RunCluster(Team& team, Disk& disk, Clock& clock, const RunFolder& folder, const Json& plan,
             std::function<void(const std::string&)> note);
  void on_step(const StepEvent&) override;
  void on_evaluation(const EvaluationEvent&) override;  // collective
  void finish();                                        // the run has ended as it should. Collective
  void add_failure(const std::exception& problem);

  std::vector<std::string> hosts() const;  // of the ranks, by name, on rank 0; empty of a rank alone
  struct HostPair {
    std::string a, b;
    PairCost cost;
  };
  std::vector<HostPair> host_pairs() const;  // as measured at the end, on rank 0: the least between ranks of the two

 private:
  void add_traffic();
  void add_links();
  void write();
  Team& team_;
  Disk& disk_;
  Clock& clock_;
  const RunFolder& folder_;
  std::function<void(const std::string&)> note_;
  const bool described_, simulated_;
  double told_ = 0;  // when the ranks' doings were written last
  Json json_;        // rank 0's is what is written
};

}  // namespace echelon::cli
