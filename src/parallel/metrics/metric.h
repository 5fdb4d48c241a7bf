#pragma once
// Metrics by name: what an evaluation reports besides the loss, and which way is better. One row a kind in
// metric.cpp.
//
//   accuracy                  share of samples (of tokens, of labels) that were predicted right
//   top_K                     share whose target is among the K classes with the greatest scores: top_5
//   precision, recall, f1     mean over the classes (macro); f1_micro: of all classes together; f1_per_class: each one
//   auc                       area under the ROC curve; several classes: one against the rest, mean over the classes
//   log_loss                  mean of -log(probability of the target), without weights, focal factor or smoothing
//   perplexity                exp(log_loss)
//   mae, rmse, r2             of numbers, in the units of the data; mean over the targets; mae_per_target: each one

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"

namespace echelon {

struct Metric {
  enum class Kind { loss, accuracy, top_k, precision, recall, f1, auc, log_loss, perplexity, mae, rmse, r2 };
  enum class Over { all, micro, each };  // how classes or targets are put together; `all`: their mean
  std::string name;
  Kind kind = Kind::loss;
  Over over = Over::all;
  std::int64_t k = 0;  // of top_k

  bool higher_is_better() const;
};

using MetricValues = std::vector<std::pair<std::string, double>>;

// None if there is no such metric. "loss" is one: that of the evaluation itself.
std::optional<Metric> metric_named(const std::string& name);
// Whether it can be computed for a model that learns this.
bool has_meaning(const Metric& metric, models::Task task);
// What is reported if nobody says anything.
std::vector<Metric> usual_metrics(models::Task task);
// Every name that has a meaning for the task, for messages; top_k as top_5.
std::vector<std::string> metric_names(models::Task task);

}  // namespace echelon
