#pragma once
// What every node of one graph takes on a platform, looked up once. Immutable after construction.

#include <map>
#include <string>
#include <vector>

#include "foresight/costs/platform.h"
#include "foresight/prediction.h"
#include "graph/graph.h"

namespace echelon::foresight {

class GraphCosts {
 public:
  // `busy`: cores of this machine that work at the same time.
  GraphCosts(const Graph& graph, const Platform& platform, int busy);

  double seconds(int rank, std::size_t node) const;
  double all(int rank) const;                  // of one run
  double flops() const { return all_flops_; }  // the same
  double measured_share() const { return all_seconds_ > 0 ? measured_ / all_seconds_ : 1; }
  // Adds what each operation takes in one run, by OpCosts::name_of; and what the profile calls it.
  void add_operations(int rank, std::map<std::string, double>& operations) const;
  void add_profiled(const Graph& graph, Prediction& prediction) const;
  // Adds what each family of operations takes in `runs` runs.
  void add_parts(std::map<std::string, double>& parts, double runs) const;

 private:
  const Platform& platform_;
  std::vector<double> seconds_, flops_;
  std::vector<std::string> families_, names_;  // names are empty of what computes nothing
  double all_seconds_ = 0, all_flops_ = 0, measured_ = 0;
};

// Fills in what follows from the ranks: compute, exchange, and the parts by size.
void finish_prediction(Prediction& prediction, const std::map<std::string, double>& parts);

}  // namespace echelon::foresight
