#pragma once
// Evaluations by the first rank alone, where the others do not have the whole model (plan key `evaluate`). They learn
// the result, and meanwhile hear from it after every batch, so that no wait is longer than a batch. Collective.

#include <memory>

#include "parallel/step/evaluator.h"
#include "parallel/team/team.h"

namespace echelon {

class FirstEvaluator {
 public:
  // As Evaluator; `parameters` are read on rank 0 only.
  FirstEvaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                 data::DatasetPtr data, std::int64_t batch, Team& team, std::vector<Metric> metrics);
  Evaluation run();

 private:
  void share(Evaluation& result);

  Team& team_;
  std::unique_ptr<LocalTeam> alone_;      // on rank 0
  std::unique_ptr<Evaluator> evaluator_;  // the same
};

}  // namespace echelon
