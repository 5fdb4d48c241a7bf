#include "kernels/loss/class_scores.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss/class_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_FLATTEN void rows_class_scores(const float* logits, const std::int32_t* targets, std::size_t rows, ClassPart part,
                                   float smoothing, ClassScores* scores, float* exps) {
  const std::size_t cols = part.count;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * cols;
    ClassScores s;
    s.greatest = row_max(x, cols);
    const std::int64_t at = std::int64_t{targets[r]} - static_cast<std::int64_t>(part.first);
    if (at >= 0 && at < static_cast<std::int64_t>(cols)) {
      s.distance = x[at] - s.greatest;
      bool hit = x[at] == s.greatest;
      for (std::int64_t c = 0; c < at && hit; ++c) hit = x[c] != s.greatest;
      s.hit = hit ? 1.0f : 0.0f;
    }
    if (smoothing != 0) {
      const V shift = set(s.greatest);
      s.sum = static_cast<float>(blocked_sum(cols, [&](auto i) HWY_ATTR { return hn::Sub(i.load(x), shift); }));
    }
    s.total = static_cast<float>(exps == nullptr ? exp_row_sum(x, s.greatest, cols)
                                                 : exp_row(x, s.greatest, exps + r * cols, cols));
    scores[r] = s;
  }
}

HWY_FLATTEN void rows_class_scores_grad(const float* exps, const std::int32_t* targets, const ClassScores* d_scores,
                                        std::size_t rows, ClassPart part, float* dx) {
  const std::size_t cols = part.count;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* e = exps + r * cols;
    float* d = dx + r * cols;
    const V factor = set(d_scores[r].total), shift = set(d_scores[r].sum);
    for_each_vector<4>(cols, [&](auto i) HWY_ATTR { i.store(hn::MulAdd(i.load(e), factor, shift), d); });
    const std::int64_t at = std::int64_t{targets[r]} - static_cast<std::int64_t>(part.first);
    if (at >= 0 && at < static_cast<std::int64_t>(cols)) d[at] += d_scores[r].distance;
  }
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(rows_class_scores);
HWY_EXPORT(rows_class_scores_grad);

void class_scores(const float* logits, const std::int32_t* targets, std::size_t rows, ClassPart part, float smoothing,
                  ClassScores* scores, float* exps) {
  HWY_DYNAMIC_DISPATCH(rows_class_scores)(logits, targets, rows, part, smoothing, scores, exps);
}

void class_scores_grad(const float* exps, const std::int32_t* targets, const ClassScores* d_scores, std::size_t rows,
                       ClassPart part, float* dx) {
  HWY_DYNAMIC_DISPATCH(rows_class_scores_grad)(exps, targets, d_scores, rows, part, dx);
}

// A handful of numbers a row: plain loops in double.
ClassLoss join_class_scores(const ClassScores* scores, const std::int32_t* targets, std::size_t rows,
                            std::span<const ClassPart> parts, float smoothing, ClassScores* d_scores) {
  ClassLoss result;
  std::size_t classes = 0;
  for (const ClassPart& part : parts) classes += part.count;
  const double kept = 1 - static_cast<double>(smoothing);
  const double other = static_cast<double>(smoothing) / static_cast<double>(classes);
  for (std::size_t r = 0; r < rows; ++r) {
    auto of = [&](std::size_t p) -> const ClassScores& { return scores[p * rows + r]; };
    if (d_scores != nullptr)
      for (std::size_t p = 0; p < parts.size(); ++p) d_scores[p * rows + r] = {};
    if (targets[r] < 0) continue;
    const auto target = static_cast<std::size_t>(targets[r]);
    double greatest = of(0).greatest;
    for (std::size_t p = 1; p < parts.size(); ++p) greatest = std::max<double>(greatest, of(p).greatest);
    double total = 0, distance = 0, sum = 0;  // all measured from `greatest`
    bool before = false, correct = false;     // a part on the left that has the greatest too wins
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const double shift = of(p).greatest - greatest;
      total += of(p).total * std::exp(shift);
      sum += of(p).sum + static_cast<double>(parts[p].count) * shift;
      if (target >= parts[p].first && target < parts[p].first + parts[p].count) {
        distance = of(p).distance + shift;
        correct = of(p).hit != 0 && shift == 0 && !before;
      }
      before = before || shift == 0;
    }
    const double log_sum = std::log(total);
    double loss = kept * (log_sum - distance);
    if (smoothing != 0) loss += static_cast<double>(smoothing) * log_sum - other * sum;
    result.loss += loss;
    result.correct += correct;
    result.counted += 1;
    if (d_scores == nullptr) continue;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      ClassScores& d = d_scores[p * rows + r];
      d.total = static_cast<float>(std::exp(of(p).greatest - greatest) / total);
      d.distance = static_cast<float>(-kept);  // read by the part that has the target
      d.sum = static_cast<float>(-other);
    }
  }
  return result;
}

}  // namespace echelon::kernels
#endif
