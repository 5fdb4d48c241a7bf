#include "kernels/softmax.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

// Calls phase(r) for each row of a group before the next phase begins, group by group.
template <class First, class Second, class Third>
HWY_INLINE void in_phases(std::size_t rows, std::size_t cols, const First& first, const Second& second,
                          const Third& third) {
  const std::size_t together = rows_together(cols);
  for (std::size_t r = 0; r < rows; r += together) {
    const std::size_t count = rows - r < together ? rows - r : together;
    for (std::size_t k = 0; k < count; ++k) first(r + k, k);
    for (std::size_t k = 0; k < count; ++k) second(r + k, k);
    for (std::size_t k = 0; k < count; ++k) third(r + k, k);
  }
}

HWY_FLATTEN void softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  if (cols == 0) return;
  float greatest[most_rows_together], inverse[most_rows_together];
  in_phases(
      rows, cols, [&](std::size_t r, std::size_t k) HWY_ATTR { greatest[k] = row_max(x + r * cols, cols); },
      [&](std::size_t r, std::size_t k)
          HWY_ATTR { inverse[k] = 1 / static_cast<float>(exp_row(x + r * cols, greatest[k], y + r * cols, cols)); },
      [&](std::size_t r, std::size_t k) HWY_ATTR {
        const V factor = set(inverse[k]);
        float* row = y + r * cols;
        for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::Mul(at.load(row), factor), row); });
      });
}

HWY_FLATTEN void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  float inner[most_rows_together];
  in_phases(
      rows, cols, [](std::size_t, std::size_t) {},
      [&](std::size_t r, std::size_t k) HWY_ATTR {
        const float *y_row = y + r * cols, *dy_row = dy + r * cols;
        inner[k] = static_cast<float>(
            blocked_sum(cols, [&](auto at) HWY_ATTR { return hn::Mul(at.load(y_row), at.load(dy_row)); }));
      },
      [&](std::size_t r, std::size_t k) HWY_ATTR {
        const V shift = set(inner[k]);
        const float *y_row = y + r * cols, *dy_row = dy + r * cols;
        float* row = dx + r * cols;
        for_each_vector<4>(
            cols, [&](auto at) HWY_ATTR { at.store(hn::Mul(at.load(y_row), hn::Sub(at.load(dy_row), shift)), row); });
      });
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(softmax);
HWY_EXPORT(softmax_grad);

void softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(softmax)(x, y, rows, cols);
}
void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(softmax_grad)(y, dy, dx, rows, cols);
}

}  // namespace echelon::kernels
#endif
