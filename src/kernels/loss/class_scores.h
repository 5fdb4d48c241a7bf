#pragma once
// Cross-entropy over classes that are dealt out: whoever has the logits of some classes says five numbers about each
// row, and from those numbers of all parts the loss and its gradient follow. The logits are never in one place.
// Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/loss/loss.h"

namespace echelon::kernels {

// The classes [first, first + count), count > 0.
struct ClassPart {
  std::size_t first = 0, count = 0;
};

// What a part says of a row x, in this order. The others are measured from `greatest`, which therefore has no gradient.
struct ClassScores {
  float greatest = 0;  // of the part
  float total = 0;     // the sum of exp(x - greatest)
  float distance = 0;  // x[target] - greatest, if the target is in the part; else 0
  float hit = 0;       // 1 if the target is the first greatest of the part; else 0
  float sum = 0;       // the sum of x - greatest; only with label smoothing
};
inline constexpr std::size_t class_score_columns = sizeof(ClassScores) / sizeof(float);

// logits[rows, part.count] -> scores[rows]. `exps` (may be null, may be `logits`) gets exp(x - greatest).
void class_scores(const float* logits, const std::int32_t* targets, std::size_t rows, ClassPart part, float smoothing,
                  ClassScores* scores, float* exps);
// The gradient: dx from what `class_scores` left in `exps` and the gradient of the scores. dx may be `exps`.
void class_scores_grad(const float* exps, const std::int32_t* targets, const ClassScores* d_scores, std::size_t rows,
                       ClassPart part, float* dx);

// scores[parts.size()][rows] -> the loss over all classes. `d_scores` (may be null) gets its gradient.
ClassLoss join_class_scores(const ClassScores* scores, const std::int32_t* targets, std::size_t rows,
                            std::span<const ClassPart> parts, float smoothing, ClassScores* d_scores);

void ref_class_scores(const float* logits, const std::int32_t* targets, std::size_t rows, ClassPart part,
                      float smoothing, ClassScores* scores, float* exps);
void ref_class_scores_grad(const float* exps, const std::int32_t* targets, const ClassScores* d_scores,
                           std::size_t rows, ClassPart part, float* dx);

}  // namespace echelon::kernels
