#pragma once
// A quick estimate of a plan from a network's layer table: for searches that look at thousands of plans, and for jobs
// whose graph is too large to be cut for each of them. Stages are cut so that the heaviest is as light as can be, and
// the schedule's own formula says how long ranks are idle. What is quickest by estimate is replayed
// (foresight/predict.h). Pure functions.

#include "foresight/layer_table.h"
#include "foresight/prediction.h"

namespace echelon::foresight {

// `plan` is legal and its `data` is filled in. Of the ranks of one replica, by position.
Prediction estimate(const LayerTable& table, const PlanSpec& plan, const Platform& platform);

}  // namespace echelon::foresight
