// Products of a matrix with a few vectors, against sums in double.

#include "codec/kernels/few_vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace echelon::codecs {
namespace {

class FewVectors : public testing::TestWithParam<SomeRows> {
 protected:
  static std::vector<float> drawn(std::size_t n, std::uint32_t seed) {
    const Stream random({.seed = seed});
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = random.normal(i);
    return x;
  }

  const SomeRows size_ = GetParam();
  const std::vector<float> m_ = drawn(size_.rows * size_.columns, 1);
  const std::vector<float> left_ = drawn(size_.count * size_.all_rows, 2);
  const std::vector<float> right_ = drawn(size_.count * size_.columns, 3);
};

TEST_P(FewVectors, OfTheRowsAreTheirDotProducts) {
  std::vector<float> left = left_;
  rows_by_vectors(size_, m_.data(), right_.data(), left.data());
  for (std::size_t k = 0; k < size_.count; ++k)
    for (std::size_t i = 0; i < size_.all_rows; ++i) {
      double sum = 0, sizes = 0;
      for (std::size_t j = 0; i < size_.rows && j < size_.columns; ++j) {
        const double term = static_cast<double>(m_[i * size_.columns + j]) * right_[k * size_.columns + j];
        sum += term, sizes += std::abs(term);
      }
      const std::size_t at = k * size_.all_rows + i;
      if (i < size_.rows)
        ASSERT_NEAR(left[at], sum, 1e-6 * (1 + sizes)) << k << " " << i;
      else
        ASSERT_EQ(left[at], left_[at]);  // of rows that are not there
    }
}

TEST_P(FewVectors, OfTheColumnsAreWeightedSumsOfTheRows) {
  std::vector<float> right(right_.size(), NAN);  // what was there does not matter
  vectors_by_rows(size_, m_.data(), left_.data(), right.data());
  for (std::size_t k = 0; k < size_.count; ++k)
    for (std::size_t j = 0; j < size_.columns; ++j) {
      double sum = 0, sizes = 0;
      for (std::size_t i = 0; i < size_.rows; ++i) {
        const double term = static_cast<double>(m_[i * size_.columns + j]) * left_[k * size_.all_rows + i];
        sum += term, sizes += std::abs(term);
      }
      ASSERT_NEAR(right[k * size_.columns + j], sum, 1e-6 * (1 + sizes)) << k << " " << j;
    }
}

TEST_P(FewVectors, MakeAProductThatIsAdded) {
  std::vector<float> m = m_;
  add_product(size_, -0.5f, left_.data(), right_.data(), m.data());
  for (std::size_t i = 0; i < size_.rows; ++i)
    for (std::size_t j = 0; j < size_.columns; ++j) {
      double sum = m_[i * size_.columns + j], sizes = std::abs(sum);
      for (std::size_t k = 0; k < size_.count; ++k) {
        const double term = -0.5 * left_[k * size_.all_rows + i] * right_[k * size_.columns + j];
        sum += term, sizes += std::abs(term);
      }
      ASSERT_NEAR(m[i * size_.columns + j], sum, 1e-6 * (1 + sizes)) << i << " " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FewVectors,
                         testing::Values(SomeRows{.rows = 1, .columns = 1, .all_rows = 1, .count = 1},
                                         SomeRows{.rows = 7, .columns = 33, .all_rows = 7, .count = 4},
                                         SomeRows{.rows = 8, .columns = 47, .all_rows = 11, .count = 3},
                                         SomeRows{.rows = 13, .columns = 15, .all_rows = 13, .count = 6},
                                         SomeRows{.rows = 6, .columns = 1024, .all_rows = 64, .count = 9}));

}  // namespace
}  // namespace echelon::codecs
