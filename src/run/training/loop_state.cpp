#include "run/training/loop_state.h"

#include <cmath>
#include <limits>

namespace echelon {

Json to_json(const Evaluation& e) {
  Json metrics = Json::array();
  for (const auto& [name, value] : e.metrics) metrics.push_back({name, value});
  return {{"loss", e.loss}, {"accuracy", e.accuracy}, {"samples", e.samples}, {"terms", e.terms}, {"metrics", metrics}};
}

Evaluation evaluation_from(const Json& j) {
  const auto number = [](const Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); };
  Evaluation e{.loss = number(j.at("loss")),
               .accuracy = number(j.at("accuracy")),
               .samples = j.at("samples").get<std::int64_t>(),
               .terms = j.at("terms").get<std::int64_t>()};
  for (const Json& m : j.at("metrics")) e.metrics.emplace_back(m.at(0).get<std::string>(), number(m.at(1)));
  return e;
}

Json Training::LoopState::to_json() const {
  Json j{{"epoch_loss", epoch.loss},         {"epoch_correct", epoch.correct},
         {"epoch_terms", epoch.terms},       {"evaluations_since_best", evaluations_since_best},
         {"evaluation_due", evaluation_due}, {"stopped_by", stopped_by}};
  if (best) j["best_score"] = best->value, j["best_loss"] = best->loss, j["best_step"] = best_step;
  if (plateau.factor() < 1 || plateau.watching()) j["plateau"] = plateau.to_json();
  if (rate_factor != 1) j["rate_factor"] = rate_factor;
  if (replayed > 0) j["replayed"] = replayed;
  for (const auto& [rank, times] : errors) j["errors"].push_back({rank, times});
  if (test) j["test"] = echelon::to_json(*test), j["tested_step"] = tested_step;
  return j;
}

void Training::LoopState::read(const Json& j) {
  epoch.loss = j.value("epoch_loss", 0.0);
  epoch.correct = j.value("epoch_correct", 0.0);
  epoch.terms = j.value("epoch_terms", 0.0);
  evaluations_since_best = j.value("evaluations_since_best", std::int64_t{0});
  evaluation_due = j.value("evaluation_due", false);
  stopped_by = j.value("stopped_by", std::string());
  errors.clear();
  if (j.contains("errors"))
    for (const Json& e : j.at("errors")) errors[e.at(0).get<Rank>()] = e.at(1).get<int>();
  best.reset();
  test.reset();
  if (j.contains("best_score"))
    best = Score{j.at("best_score").get<double>(), j.value("best_loss", std::numeric_limits<double>::infinity())};
  if (j.contains("plateau")) plateau.read(j.at("plateau"));
  rate_factor = j.value("rate_factor", 1.0);
  replayed = j.value("replayed", std::int64_t{0});
  best_step = j.value("best_step", std::int64_t{0});
  if (j.contains("test")) test = evaluation_from(j.at("test"));
  tested_step = j.value("tested_step", std::int64_t{0});
}

}  // namespace echelon
