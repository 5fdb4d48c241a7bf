#pragma once
// What a training step came to, and where a rank's time went.

#include <cstdint>
#include <vector>

namespace echelon {

struct StepResult {
  double loss = 0;     // mean over the terms of the global batch; of the last phase
  double correct = 0;  // terms that were predicted right
  std::int64_t samples = 0, terms = 0;
  double gradient_norm = 0;  // before clipping; 0 unless something needed it
  bool stop = false;         // whether any rank asked to stop after this step
};

// Of the buckets in which gradients leave, the one whose sum a rank waited for longest, and for whom.
struct BucketWait {
  int bucket = -1, buckets = 0;  // from 0; -1: there was none
  int rank = -1;
  double seconds = 0;
};

// Where a rank's time in steps went, in seconds.
struct RankTimes {
  double compute = 0;                    // forward and backward
  double exchange = 0;                   // summing, sending, updating; not waiting
  std::vector<double> waiting_for = {};  // by rank
  BucketWait bucket = {};
};

}  // namespace echelon
