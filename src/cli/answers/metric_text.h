#pragma once
// How evaluations are written: for people, and as JSON.

#include <nlohmann/json.hpp>
#include <string>

#include "parallel/step/evaluator.h"

namespace echelon::cli {

std::string metric_text(const std::string& name, double value);  // "accuracy 98.33 %", "f1 0.9812", "mae 20134"
std::string number_text(double value);                           // "0.9812", "7.14e-05", "20134"

// "loss 0.0712  accuracy 98.33 %  f1 0.9812"
std::string in_words(const Evaluation& evaluation);

// Loss, accuracy and metrics by name, each behind `prefix`: "test_" makes test_loss. The order is that of in_words.
MetricValues named_values(const Evaluation& evaluation, const std::string& prefix);

}  // namespace echelon::cli
