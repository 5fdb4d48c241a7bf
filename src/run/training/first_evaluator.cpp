#include "run/training/first_evaluator.h"

namespace echelon {

FirstEvaluator::FirstEvaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                               data::DatasetPtr data, std::int64_t batch, Team& team, std::vector<Metric> metrics)
    : team_(team) {
  if (team.world().rank() != 0) return;
  alone_ = std::make_unique<LocalTeam>(1);
  evaluator_ =
      std::make_unique<Evaluator>(model, table, parameters, std::move(data), batch, alone_->team, std::move(metrics));
}

Evaluation FirstEvaluator::run() {
  std::uint64_t busy = 1;
  const auto tell = [&] { team_.broadcast(std::as_writable_bytes(std::span(&busy, 1))); };
  Evaluation result;
  if (evaluator_) {
    result = evaluator_->run({}, [&] { return tell(), true; });
    busy = 0;
    tell();
  } else {
    while (busy != 0) tell();
  }
  share(result);
  return result;
}

void FirstEvaluator::share(Evaluation& result) {
  struct Head {
    double loss, accuracy;
    std::int64_t samples, terms;
    std::uint64_t metrics;
  } head{result.loss, result.accuracy, result.samples, result.terms, result.metrics.size()};
  team_.broadcast(std::as_writable_bytes(std::span(&head, 1)));
  result.loss = head.loss, result.accuracy = head.accuracy;
  result.samples = head.samples, result.terms = head.terms;
  result.metrics.resize(head.metrics);
  for (auto& [name, value] : result.metrics) {
    std::uint64_t length = name.size();
    team_.broadcast(std::as_writable_bytes(std::span(&length, 1)));
    name.resize(length);
    team_.broadcast(std::as_writable_bytes(std::span(name)));
    team_.broadcast(std::as_writable_bytes(std::span(&value, 1)));
  }
}

}  // namespace echelon
