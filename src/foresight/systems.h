#pragma once
// What systems whose result is another one would take (`--allow async,local,compressed`): the time of a step from what
// the system sends (parallel/composition.h), times the samples that it is taken to need for the same accuracy. The
// second factor is our own measurement on one network (docs/systems.md, "Measured": epochs until LeNet-5 reads 98.5 %
// of MNIST, beside bsp's), and may be another one for another network: an estimate, and marked as one everywhere.

#include <string>
#include <vector>

#include "foresight/costs/platform.h"
#include "foresight/prediction.h"
#include "recipe/prepare.h"
#include "world/os/disk.h"

namespace echelon::foresight {

struct Allowed {
  bool async = false;       // workers do not wait for each other
  bool local = false;       // they exchange now and then
  bool compressed = false;  // in fewer bytes
  bool any() const { return async || local || compressed; }
};

struct SystemEstimate {
  std::string name;
  std::string kind;         // what of Allowed it needs: "async, local"
  double seconds = 0;       // of a step
  double more_samples = 1;  // beside exact training
  double sent = 0;          // bytes of all workers in a step
  std::string source;       // where more_samples is from
  double seconds_to_the_same() const { return seconds * more_samples; }
};

// Those of recipes/systems that need nothing but what is allowed and can train this network on these workers; those
// first that reach the same accuracy first. `best` is the quickest exact plan: its step counts for exact training.
std::vector<SystemEstimate> estimate_systems(Disk& disk, const PreparedRun& prepared, const Platform& platform,
                                             const Allowed& allowed, const Prediction& best);

// Epochs beside bsp's; 0 if it was not measured, or did not get there.
double measured_samples_factor(const std::string& system);

}  // namespace echelon::foresight
