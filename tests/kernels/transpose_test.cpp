#include "kernels/transpose.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(Transpose, EqualsItsReferenceAndTwiceIsNothing) {
  for (const std::size_t rows : std::vector<std::size_t>{1, 7, 16, 33})
    for (const std::size_t cols : std::vector<std::size_t>{1, 5, 16, 47})
      for (const std::size_t batch : std::vector<std::size_t>{0, 1, 3}) {
        const std::size_t n = batch * rows * cols;
        const Fenced x = fenced_values(n, 1);
        Fenced y(n), want(n), back(n);
        transpose(x.data(), y.data(), batch, rows, cols);
        ref_transpose(x.data(), want.data(), batch, rows, cols);
        expect_same(y, want);
        transpose(y.data(), back.data(), batch, cols, rows);
        expect_same(back, x);
      }
}

}  // namespace
}  // namespace echelon::kernels
