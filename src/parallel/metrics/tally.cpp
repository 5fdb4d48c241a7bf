#include "parallel/metrics/tally.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "parallel/metrics/auc.h"

namespace echelon {

namespace {

// Numbers of a target in a shard's sums.
constexpr std::size_t error_numbers = 5;
// Of a class: predicted and right, predicted and wrong, missed.
constexpr std::size_t right = 0, wrong = 1, missed = 2, class_counts = 3;

bool is_by_class(Metric::Kind f) {
  return f == Metric::Kind::precision || f == Metric::Kind::recall || f == Metric::Kind::f1;
}
bool is_error(Metric::Kind f) { return f == Metric::Kind::mae || f == Metric::Kind::rmse || f == Metric::Kind::r2; }
bool is_log_loss(Metric::Kind f) { return f == Metric::Kind::log_loss || f == Metric::Kind::perplexity; }

double log_sum_exp(std::span<const float> row) {
  const double greatest = std::ranges::max(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(x - greatest);
  return greatest + std::log(sum);
}

// 0 where there is nothing to divide by: a class that was never predicted has no precision to speak of.
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double score_of_counts(Metric::Kind kind, double tp, double fp, double fn) {
  switch (kind) {
    case Metric::Kind::precision: return ratio(tp, tp + fp);
    case Metric::Kind::recall: return ratio(tp, tp + fn);
    default: return ratio(2 * tp, 2 * tp + fp + fn);
  }
}

}  // namespace

MetricTally::MetricTally(std::vector<Metric> metrics, const models::Model& model, const data::DatasetInfo& info)
    : metrics_(std::move(metrics)), task_(model.task()), names_(info.class_names) {
  if (names_.empty())
    for (const data::TargetColumn& target : info.targets) names_.push_back(target.name);
  const models::LossSpec& loss = model.inputs().loss;
  loss_is_log_loss_ = loss.class_weights.empty() && loss.focal_gamma == 0;
  classes_ = static_cast<std::size_t>(std::max<std::int64_t>(info.classes, 0));
  if (task_ == models::Task::multi_label || task_ == models::Task::regress)
    targets_ = static_cast<std::size_t>(model.inputs().target.type.elements());
  if (task_ == models::Task::multi_label) classes_ = targets_;
  if (task_ == models::Task::regress) {
    quantiles_ = std::max<std::size_t>(1, loss.quantiles.size());
    middle_ = models::middle_quantile(loss.quantiles);
    units_.assign(targets_, 1.0);
    for (std::size_t t = 0; t < std::min(targets_, info.targets.size()); ++t) units_[t] = info.targets[t].deviation;
  }
  bool areas = false, errors = false;
  for (const Metric& m : metrics_) {
    by_class_ |= is_by_class(m.kind) || (m.kind == Metric::Kind::accuracy && task_ == models::Task::multi_label);
    log_loss_ |= is_log_loss(m.kind) && !loss_is_log_loss_;
    areas |= m.kind == Metric::Kind::auc;
    errors |= is_error(m.kind);
    if (m.kind == Metric::Kind::top_k) ks_.push_back(m.k);
  }
  if (log_loss_) sums_ += 1;
  if (errors) sums_ += targets_ * error_numbers;
  if (by_class_) counts_ += classes_ * class_counts;
  counts_ += ks_.size();
  if (counts_ > 0) counts_ += 1;  // rows that count
  if (areas) scores_ = task_ == models::Task::multi_label ? 2 * targets_ : (classes_ == 2 ? 1 : classes_) + 1;
}

void MetricTally::add(std::span<const float> predictions, std::span<const std::byte> targets, std::span<double> sums,
                      std::span<std::int64_t> counts, std::span<double> scores) const {
  std::ranges::fill(sums, 0.0);
  const auto* numbers = reinterpret_cast<const float*>(targets.data());
  switch (task_) {
    case models::Task::classify:
    case models::Task::language:
      return add_classes(predictions, reinterpret_cast<const std::int32_t*>(targets.data()),
                         predictions.size() / classes_, sums, counts, scores);
    case models::Task::multi_label:
      return add_labels(predictions, numbers, predictions.size() / targets_, sums, counts, scores);
    case models::Task::regress:
      return add_numbers(predictions, numbers, predictions.size() / (targets_ * quantiles_), sums);
    case models::Task::reconstruct:
    case models::Task::generate: return;
  }
}

void MetricTally::add_classes(std::span<const float> logits, const std::int32_t* targets, std::size_t rows,
                              std::span<double> sums, std::span<std::int64_t> counts, std::span<double> scores) const {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = logits.subspan(r * classes_, classes_);
    double* kept = scores_ > 0 ? scores.data() + r * scores_ : nullptr;
    if (kept) std::fill_n(kept, scores_, -1.0);
    if (targets[r] < 0) continue;
    const auto target = static_cast<std::size_t>(targets[r]);
    if (log_loss_) sums[0] += log_sum_exp(row) - row[target];
    if (counts_ > 0) {
      ++counts.back();
      // The first of equals is the prediction, and ranks before the target only if it is a greater score or comes
      // first.
      std::int64_t before = 0;
      for (std::size_t c = 0; c < classes_; ++c)
        before += row[c] > row[target] || (row[c] == row[target] && c < target);
      for (std::size_t k = 0; k < ks_.size(); ++k)
        counts[(by_class_ ? classes_ * class_counts : 0) + k] += before < ks_[k];
      if (by_class_) {
        const auto said = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
        if (said == target) {
          ++counts[target * class_counts + right];
        } else {
          ++counts[said * class_counts + wrong];
          ++counts[target * class_counts + missed];
        }
      }
    }
    if (!kept) continue;
    kept[scores_ - 1] = static_cast<double>(target);
    if (classes_ == 2) {
      kept[0] = static_cast<double>(row[1]) - row[0];
    } else {
      const double log_sum = log_sum_exp(row);
      for (std::size_t c = 0; c < classes_; ++c) kept[c] = std::exp(row[c] - log_sum);
    }
  }
}

void MetricTally::add_labels(std::span<const float> logits, const float* targets, std::size_t rows,
                             std::span<double> sums, std::span<std::int64_t> counts, std::span<double> scores) const {
  for (std::size_t r = 0; r < rows; ++r) {
    const float *row = logits.data() + r * targets_, *wanted = targets + r * targets_;
    if (counts_ > 0) ++counts.back();
    for (std::size_t t = 0; t < targets_; ++t) {
      const bool said = row[t] > 0, is = wanted[t] > 0.5f;
      const double x = row[t];
      if (log_loss_) sums[0] += std::max(x, 0.0) - x * wanted[t] + std::log1p(std::exp(-std::abs(x)));
      if (by_class_ && (said || is)) ++counts[t * class_counts + (said == is ? right : said ? wrong : missed)];
      if (scores_ > 0) scores[r * scores_ + t] = x, scores[r * scores_ + targets_ + t] = is;
    }
  }
}

void MetricTally::add_numbers(std::span<const float> output, const float* targets, std::size_t rows,
                              std::span<double> sums) const {
  for (std::size_t t = 0; t < targets_; ++t) {
    Errors e;
    for (std::size_t r = 0; r < rows; ++r) {
      const double is = static_cast<double>(targets[r * targets_ + t]) * units_[t];
      const double said = static_cast<double>(output[(r * targets_ + t) * quantiles_ + middle_]) * units_[t];
      e.count += 1;
      const double from_mean = is - e.mean;
      e.mean += from_mean / e.count;
      e.squares += from_mean * (is - e.mean);
      e.absolute += std::abs(said - is);
      e.squared += (said - is) * (said - is);
    }
    const double numbers[error_numbers] = {e.count, e.mean, e.squares, e.absolute, e.squared};
    std::ranges::copy(numbers, sums.begin() + static_cast<std::ptrdiff_t>(t * error_numbers));
  }
}

std::vector<MetricTally::Errors> MetricTally::fold_errors(std::span<const double> sums) const {
  std::vector<Errors> all(targets_);
  for (; !sums.empty(); sums = sums.subspan(sums_))
    for (std::size_t t = 0; t < targets_; ++t) {
      const double* of = sums.data() + t * error_numbers;
      if (of[0] == 0) continue;
      Errors& e = all[t];
      const double count = e.count + of[0], apart = of[1] - e.mean;
      e.squares += of[2] + apart * apart * e.count * of[0] / count;
      e.mean += apart * of[0] / count;
      e.count = count, e.absolute += of[3], e.squared += of[4];
    }
  return all;
}

std::string MetricTally::name_of(std::size_t i) const {
  return i < names_.size() && !names_[i].empty() ? names_[i] : std::to_string(i);
}

void MetricTally::put_by_class(const Metric& metric, std::span<const std::int64_t> counts, MetricValues& out) const {
  double all[class_counts] = {}, sum = 0, seen = 0;
  for (std::size_t c = 0; c < classes_; ++c) {
    double of[class_counts];
    for (std::size_t i = 0; i < class_counts; ++i) all[i] += of[i] = static_cast<double>(counts[c * class_counts + i]);
    const double value = score_of_counts(metric.kind, of[right], of[wrong], of[missed]);
    // A class that is neither there nor predicted is left out.
    if (task_ == models::Task::multi_label || of[right] + of[wrong] + of[missed] > 0) sum += value, seen += 1;
    if (metric.over == Metric::Over::each) {
      out.emplace_back(fmt::format("{}[{}]", metric.name.substr(0, metric.name.find("_per_class")), name_of(c)), value);
    }
  }
  if (metric.over == Metric::Over::all) out.emplace_back(metric.name, ratio(sum, seen));
  if (metric.over == Metric::Over::micro)
    out.emplace_back(metric.name, score_of_counts(metric.kind, all[right], all[wrong], all[missed]));
}

void MetricTally::put_errors(const Metric& metric, const std::vector<Errors>& errors, MetricValues& out) const {
  double sum = 0;
  for (std::size_t t = 0; t < targets_; ++t) {
    const Errors& e = errors[t];
    const double value = metric.kind == Metric::Kind::mae    ? ratio(e.absolute, e.count)
                         : metric.kind == Metric::Kind::rmse ? std::sqrt(ratio(e.squared, e.count))
                         : e.squares > 0                     ? 1 - e.squared / e.squares
                                                             : (e.squared == 0 ? 1.0 : 0.0);
    sum += value;
    if (metric.over == Metric::Over::each)
      out.emplace_back(fmt::format("{}[{}]", metric.name.substr(0, metric.name.find("_per_target")), name_of(t)),
                       value);
  }
  if (metric.over != Metric::Over::each) out.emplace_back(metric.name, ratio(sum, static_cast<double>(targets_)));
}

double MetricTally::mean_area(std::span<const double> scores) const {
  const std::size_t rows = scores_ > 0 ? scores.size() / scores_ : 0;
  const bool labels = task_ == models::Task::multi_label, binary = !labels && classes_ == 2;
  double sum = 0, seen = 0;
  for (std::size_t c = 0; c < (binary ? 1 : classes_); ++c) {
    std::vector<ScoredSample> samples;
    samples.reserve(rows);
    bool broken = false, any[2] = {};
    for (std::size_t r = 0; r < rows; ++r) {
      const double* row = scores.data() + r * scores_;
      if (!labels && row[scores_ - 1] < 0) continue;  // a sample without a class
      const bool positive =
          labels ? row[targets_ + c] > 0 : row[scores_ - 1] == (binary ? 1.0 : static_cast<double>(c));
      samples.push_back({row[c], positive});
      any[positive] = true;
      broken |= std::isnan(row[c]);
    }
    if (broken) return std::nan("");
    if (any[0] && any[1]) sum += area_under_roc(std::move(samples)), seen += 1;  // a class that is not there has none
  }
  return seen > 0 ? sum / seen : std::nan("");
}

MetricValues MetricTally::values(std::span<const double> sums, std::span<const std::int64_t> counts,
                                 std::span<const double> scores, const Known& known) const {
  const double terms = static_cast<double>(std::max<std::int64_t>(known.terms, 1));
  double log_loss = known.loss;
  if (log_loss_) {
    log_loss = 0;
    for (std::size_t s = 0; s < sums.size(); s += sums_) log_loss += sums[s];
    log_loss /= terms;
  }
  const std::vector<Errors> errors =
      targets_ > 0 && task_ == models::Task::regress && sums_ > 0 ? fold_errors(sums) : std::vector<Errors>();
  const double rows = counts.empty() ? 0 : static_cast<double>(counts.back());
  std::size_t k = by_class_ ? classes_ * class_counts : 0;
  MetricValues out;
  for (const Metric& m : metrics_) {
    if (is_by_class(m.kind)) {
      put_by_class(m, counts, out);
    } else if (is_error(m.kind)) {
      put_errors(m, errors, out);
    } else if (m.kind == Metric::Kind::accuracy && known.accuracy >= 0) {
      out.emplace_back(m.name, known.accuracy);
    } else if (m.kind == Metric::Kind::accuracy) {
      double mistakes = 0;
      for (std::size_t c = 0; c < classes_; ++c)
        mistakes += static_cast<double>(counts[c * class_counts + wrong] + counts[c * class_counts + missed]);
      out.emplace_back(m.name, 1 - ratio(mistakes, rows * static_cast<double>(classes_)));
    } else if (m.kind == Metric::Kind::top_k) {
      out.emplace_back(m.name, ratio(static_cast<double>(counts[k++]), rows));
    } else if (m.kind == Metric::Kind::auc) {
      out.emplace_back(m.name, mean_area(scores));
    } else if (is_log_loss(m.kind)) {
      out.emplace_back(m.name, m.kind == Metric::Kind::log_loss ? log_loss : std::exp(log_loss));
    }
  }
  return out;
}

}  // namespace echelon
