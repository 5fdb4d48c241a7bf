#pragma once
// What the metrics of an evaluation need, shard by shard. The same digits for any number of cores and workers: counts
// are whole numbers, sums are kept for each shard (which is a function of the data alone) and folded in the order of
// shards, and the area under the ROC curve is counted over the scores of all samples.
//
// Immutable, so all cores may use one; what it adds to belongs to the caller.

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "models/model.h"
#include "parallel/metrics/metric.h"

namespace echelon {

class MetricTally {
 public:
  // Metrics that have no meaning for the model must not be asked for.
  MetricTally(std::vector<Metric> metrics, const models::Model& model, const data::DatasetInfo& info);

  bool reads_predictions() const { return sums() + counts() + scores() > 0; }  // else the loss is enough
  std::size_t sums() const { return sums_; }                                   // numbers of a shard
  std::size_t counts() const { return counts_; }  // whole numbers, of any number of shards together
  std::size_t scores() const { return scores_; }  // numbers of a sample

  // A shard's predictions ("logits" or "output" of the evaluation graph) and targets. `sums` and `scores` (of its
  // samples) are written, `counts` are added to.
  void add(std::span<const float> predictions, std::span<const std::byte> targets, std::span<double> sums,
           std::span<std::int64_t> counts, std::span<double> scores) const;

  // Of all shards: `sums` in the order of shards, `scores` in any order. `loss` and `accuracy` (negative: not known)
  // are what the evaluation found already, over `terms` terms.
  struct Known {
    double loss = 0, accuracy = -1;
    std::int64_t terms = 0;
  };
  MetricValues values(std::span<const double> sums, std::span<const std::int64_t> counts,
                      std::span<const double> scores, const Known& known) const;

 private:
  struct Errors {                             // of one target, folded over shards
    double count = 0, mean = 0, squares = 0;  // of the targets: mean, and the sum of squared distances from it
    double absolute = 0, squared = 0;         // of prediction minus target
  };
  void add_classes(std::span<const float> logits, const std::int32_t* targets, std::size_t rows, std::span<double> sums,
                   std::span<std::int64_t> counts, std::span<double> scores) const;
  void add_labels(std::span<const float> logits, const float* targets, std::size_t rows, std::span<double> sums,
                  std::span<std::int64_t> counts, std::span<double> scores) const;
  void add_numbers(std::span<const float> output, const float* targets, std::size_t rows, std::span<double> sums) const;
  std::vector<Errors> fold_errors(std::span<const double> sums) const;
  void put_by_class(const Metric& metric, std::span<const std::int64_t> counts, MetricValues& out) const;
  void put_errors(const Metric& metric, const std::vector<Errors>& errors, MetricValues& out) const;
  std::string name_of(std::size_t class_or_target) const;
  double mean_area(std::span<const double> scores) const;

  std::vector<Metric> metrics_;
  models::Task task_;
  std::size_t classes_ = 0, targets_ = 0, quantiles_ = 1, middle_ = 0;  // `middle_`: the quantile nearest to one half
  std::vector<double> units_;                                           // of a target's 1, by target
  std::vector<std::string> names_;                                      // of classes or targets, where they have some
  std::vector<std::int64_t> ks_;                                        // of top_k
  bool by_class_ = false, log_loss_ = false, loss_is_log_loss_ = true;
  std::size_t sums_ = 0, counts_ = 0, scores_ = 0;
};

}  // namespace echelon
