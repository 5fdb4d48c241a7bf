#pragma once
// Which gradients of a stage travel together to the ranks that sum them up (plan keys zero=2 and 3): neighbours in the
// stage's flat buffers whose gradients come from the same pass, up to four megabytes or a sixteenth of all. A bucket is
// sent when the last gradient of it has been computed. A gradient that is larger than that goes by itself, from where
// it was computed. Pure functions of the stage's graph, so all ranks that have the stage make the same buckets.

#include <cstddef>
#include <vector>

#include "collective/topology.h"
#include "graph/program.h"
#include "parallel/planned/stage_plans.h"

namespace echelon {

struct GradientBuckets {
  struct Bucket {
    Range elements;      // of the flat buffers
    int parameters = 0;  // whose gradients it waits for
  };
  std::vector<Bucket> buckets;
  std::vector<int> of_parameter;  // -1: goes by itself, or is not trained
  std::size_t slots = 0;          // buckets in memory at once: being filled, or on their way
  std::size_t slot_floats = 0;    // of the largest

  std::size_t bytes() const { return slots * slot_floats * sizeof(float); }
};

// `table` has the parameters of the stage's graph.
GradientBuckets gradient_buckets(const StagePlan& stage, const ParameterTable& table);

}  // namespace echelon
