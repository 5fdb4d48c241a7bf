#pragma once
// The prediction of a step under a plan on a platform, from what training itself would do: the graphs that the engine
// cuts (parallel/planned/stage_plans.h), the lists that its ranks run (plan/layout.h) and the buckets in which
// gradients leave (parallel/step/buckets.h), on measured costs.
//
// Pure but for memory; a prediction takes milliseconds for small networks. The prepared run, the profile behind the
// platform and the platform must outlive the call.

#include "foresight/costs/platform.h"
#include "foresight/prediction.h"
#include "recipe/prepare.h"

namespace echelon::foresight {

struct PredictOptions {
  int cores_each = 0;       // of a rank that has the whole model; 0: this machine's, shared out; clusters have one
  bool operations = false;  // also says what each operation takes
};

// `plan` is legal for as many workers as the platform has ranks, and its `data` is filled in.
Prediction predict(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                   const PredictOptions& options = {});

// Its two halves (whole_replay.cpp, split_replay.cpp): every rank has the whole model; ranks have pieces of it.
Prediction predict_whole(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                         const PredictOptions& options);
Prediction predict_split(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                         const PredictOptions& options);

}  // namespace echelon::foresight
