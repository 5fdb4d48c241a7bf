#pragma once
// cluster.json of a run with several workers: host, process and cores of each, and the plan where the model is split
// (cli/training/predicted_plan.h), written at the start; at the end what the links between them cost, as measured, and
// of few workers those of every pair (collective/link_costs.h). All ranks make one; rank 0 writes. Not in a
// simulation, whose cluster is a file and whose time must not depend on who looks. Collective.

#include <functional>
#include <string>

#include "base/json.h"
#include "parallel/team/team.h"
#include "track/run.h"

namespace echelon::cli {

class RunCluster {
 public:
  // `plan`: null if every worker has the whole model; only rank 0's counts.
  RunCluster(Team& team, Disk& disk, const RunFolder& folder, const Json& plan,
             std::function<void(const std::string&)> note);
  void add_links();

 private:
  void write();
  Team& team_;
  Disk& disk_;
  const RunFolder& folder_;
  std::function<void(const std::string&)> note_;
  Json json_;
};

}  // namespace echelon::cli
