#include "foresight/predict.h"

#include "base/error.h"

namespace echelon::foresight {

Prediction predict(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                   const PredictOptions& options) {
  invariant(plan.data * plan.ranks_of_replica() == platform.ranks(), "a plan for the ranks of the platform");
  return plan.splits_model() ? predict_split(prepared, plan, platform, options)
                             : predict_whole(prepared, plan, platform, options);
}

}  // namespace echelon::foresight
