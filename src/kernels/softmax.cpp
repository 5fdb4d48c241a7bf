#include "kernels/softmax.h"

#include "kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

void softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  if (cols == 0) return;
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const V inverse = set(static_cast<float>(1 / exp_row(x, row_max(x, cols), y, cols)));
    for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::Mul(at.load(y), inverse), y); });
  }
}

void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const double inner = blocked_sum(cols, [&](auto at) HWY_ATTR { return hn::Mul(at.load(y), at.load(dy)); });
    const V shift = set(static_cast<float>(inner));
    for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::Mul(at.load(y), hn::Sub(at.load(dy), shift)), dx); });
  }
}

void log_softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  if (cols == 0) return;
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float greatest = row_max(x, cols);
    const V shift = set(greatest), log_sum = set(static_cast<float>(std::log(exp_row_sum(x, greatest, cols))));
    for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::Sub(hn::Sub(at.load(x), shift), log_sum), y); });
  }
}

void log_softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const V total = set(static_cast<float>(blocked_sum(cols, [&](auto at) HWY_ATTR { return at.load(dy); })));
    for_each_vector(cols,
                    [&](auto at) HWY_ATTR { at.store(hn::NegMulAdd(fast_exp(at.load(y)), total, at.load(dy)), dx); });
  }
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(softmax);
HWY_EXPORT(softmax_grad);
HWY_EXPORT(log_softmax);
HWY_EXPORT(log_softmax_grad);

void softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(softmax)(x, y, rows, cols);
}
void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(softmax_grad)(y, dy, dx, rows, cols);
}
void log_softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(log_softmax)(x, y, rows, cols);
}
void log_softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(log_softmax_grad)(y, dy, dx, rows, cols);
}

}  // namespace echelon::kernels
#endif
