#include "kernels/loss/class_scores.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

std::vector<std::int32_t> some_targets(std::size_t rows, std::size_t classes) {
  std::vector<std::int32_t> targets(rows);
  for (std::size_t r = 0; r < rows; ++r)
    targets[r] = r % 5 == 3 ? -1 : static_cast<std::int32_t>((r * 7 + 2) % classes);
  return targets;
}

std::vector<ClassPart> dealt(std::size_t classes, std::size_t parts) {
  std::vector<ClassPart> result;
  for (std::size_t p = 0; p < parts; ++p)
    result.push_back({classes * p / parts, classes * (p + 1) / parts - classes * p / parts});
  return result;
}

// logits[rows, classes] -> the columns of a part.
Fenced columns_of(const Fenced& logits, std::size_t rows, std::size_t classes, ClassPart part) {
  Fenced x(rows * part.count);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < part.count; ++c)
      x.data()[r * part.count + c] = logits.data()[r * classes + part.first + c];
  return x;
}

TEST(ClassScores, EqualTheirReference) {
  on_every_target([] {
    for (const std::size_t count : std::vector<std::size_t>{1, 2, 7, 8, 17, 250})
      for (const float smoothing : {0.0f, 0.1f}) {
        const std::size_t rows = 11;
        const ClassPart part{5, count};
        const auto targets = some_targets(rows, 5 + count);
        const Fenced x = fenced_values(rows * count, 1, -6, 6);
        Fenced exps(x.size()), want_exps(x.size()), dx(x.size()), want_dx(x.size());
        std::vector<ClassScores> got(rows), want(rows), without(rows), in_place(rows);
        class_scores(x.data(), targets.data(), rows, part, smoothing, got.data(), exps.data());
        ref_class_scores(x.data(), targets.data(), rows, part, smoothing, want.data(), want_exps.data());
        class_scores(x.data(), targets.data(), rows, part, smoothing, without.data(), nullptr);
        for (std::size_t r = 0; r < rows; ++r) {
          EXPECT_EQ(got[r].greatest, want[r].greatest);
          EXPECT_NEAR(got[r].total, want[r].total, 1e-5 * want[r].total);
          EXPECT_EQ(got[r].total, without[r].total);
          EXPECT_NEAR(got[r].distance, want[r].distance, 1e-6);
          EXPECT_EQ(got[r].hit, want[r].hit);
          EXPECT_NEAR(got[r].sum, want[r].sum, 1e-5 * std::abs(want[r].sum));
        }
        expect_close(exps, want_exps, 1e-5, 1e-7);
        Fenced over = x;
        class_scores(over.data(), targets.data(), rows, part, smoothing, in_place.data(), over.data());
        expect_same(over, exps);

        std::vector<ClassScores> d(rows);
        for (std::size_t r = 0; r < rows; ++r)
          d[r] = {.total = 0.25f + static_cast<float>(r), .distance = -0.9f, .sum = -0.01f};
        class_scores_grad(exps.data(), targets.data(), d.data(), rows, part, dx.data());
        ref_class_scores_grad(exps.data(), targets.data(), d.data(), rows, part, want_dx.data());
        expect_close(dx, want_dx, 1e-5, 1e-6);
      }
  });
}

TEST(ClassScores, OfAllPartsGiveTheCrossEntropyOfTheWhole) {
  const std::size_t rows = 23;
  for (const std::size_t classes : std::vector<std::size_t>{3, 10, 97})
    for (const std::size_t parts : std::vector<std::size_t>{1, 2, 3})
      for (const float smoothing : {0.0f, 0.2f}) {
        Fenced logits = fenced_values(rows * classes, 2, -9, 9);
        logits.data()[0] = logits.data()[classes - 1] = 30;  // two greatest, in two parts: the first one counts
        const auto targets = some_targets(rows, classes);
        Fenced want_d(logits.size());
        const ClassLoss want =
            ref_cross_entropy_grad(logits.data(), targets.data(), rows, classes, smoothing, 1.0f, want_d.data());
        const auto dealt_out = dealt(classes, parts);
        std::vector<ClassScores> scores(parts * rows), d_scores(parts * rows);
        std::vector<Fenced> exps;
        for (std::size_t p = 0; p < parts; ++p) {
          exps.push_back(columns_of(logits, rows, classes, dealt_out[p]));
          class_scores(exps[p].data(), targets.data(), rows, dealt_out[p], smoothing, scores.data() + p * rows,
                       exps[p].data());
        }
        const ClassLoss got =
            join_class_scores(scores.data(), targets.data(), rows, dealt_out, smoothing, d_scores.data());
        EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss);
        EXPECT_EQ(got.correct, want.correct);
        EXPECT_EQ(got.counted, want.counted);
        for (std::size_t p = 0; p < parts; ++p) {
          class_scores_grad(exps[p].data(), targets.data(), d_scores.data() + p * rows, rows, dealt_out[p],
                            exps[p].data());
          expect_close(exps[p], columns_of(want_d, rows, classes, dealt_out[p]), 1e-4, 1e-6);
        }
      }
}

}  // namespace
}  // namespace echelon::kernels
