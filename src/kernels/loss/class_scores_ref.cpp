#include <algorithm>
#include <cmath>

#include "kernels/loss/class_scores.h"

namespace echelon::kernels {

void ref_class_scores(const float* logits, const std::int32_t* targets, std::size_t rows, ClassPart part,
                      float smoothing, ClassScores* scores, float* exps) {
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * part.count;
    const float* first_greatest = std::max_element(x, x + part.count);
    ClassScores s{.greatest = *first_greatest};
    double total = 0, sum = 0;
    for (std::size_t c = 0; c < part.count; ++c) {
      const double shifted = static_cast<double>(x[c]) - static_cast<double>(s.greatest);
      if (targets[r] >= 0 && static_cast<std::size_t>(targets[r]) == part.first + c) {
        s.distance = static_cast<float>(shifted);
        s.hit = x + c == first_greatest ? 1.0f : 0.0f;
      }
      sum += shifted;
      total += std::exp(shifted);
      if (exps != nullptr) exps[r * part.count + c] = static_cast<float>(std::exp(shifted));
    }
    s.total = static_cast<float>(total);
    if (smoothing != 0) s.sum = static_cast<float>(sum);
    scores[r] = s;
  }
}

void ref_class_scores_grad(const float* exps, const std::int32_t* targets, const ClassScores* d_scores,
                           std::size_t rows, ClassPart part, float* dx) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < part.count; ++c) {
      const bool is_target = targets[r] >= 0 && static_cast<std::size_t>(targets[r]) == part.first + c;
      dx[r * part.count + c] = static_cast<float>(static_cast<double>(exps[r * part.count + c]) * d_scores[r].total +
                                                  d_scores[r].sum + (is_target ? d_scores[r].distance : 0));
    }
}

}  // namespace echelon::kernels
