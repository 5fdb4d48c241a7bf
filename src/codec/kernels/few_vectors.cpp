#include "codec/kernels/few_vectors.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/few_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;

constexpr std::size_t four = 4;  // vectors that are handled together

// Four vectors from the first of them on, `apart` from each other; where fewer are left the last one stands for those
// that are not there.
struct Four {
  const float* x[four];
  std::size_t there;
  HWY_INLINE Four(const float* first, std::size_t apart, std::size_t left) : there(left < four ? left : four) {
    for (std::size_t k = 0; k < four; ++k) x[k] = first + (k < there ? k : there - 1) * apart;
  }
};

HWY_FLATTEN void four_dots(const float* a, const Four& b, std::size_t n, float (&dots)[four]) {
  using W = Wide<16>;  // sums side by side: an addition takes longer than the loads for it
  W sums[four];
  for (std::size_t k = 0; k < four; ++k) sums[k] = W::zero();
  const auto step = [&](auto at, std::size_t part) HWY_ATTR {
    const V x = at.load(a);
    unrolled<four>([&](auto k) HWY_ATTR { sums[k].v[part] = hn::Add(sums[k].v[part], hn::Mul(x, at.load(b.x[k]))); });
  };
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) unrolled<W::count>([&](auto part) HWY_ATTR { step(Whole{i + part * width}, part); });
  unrolled<W::count>([&](auto part) HWY_ATTR {
    const std::size_t at = i + part * width;
    if (at + width <= n)
      step(Whole{at}, part);
    else if (at < n)
      step(Rest{at, n - at}, part);
  });
  for (std::size_t k = 0; k < four; ++k) dots[k] = sums[k].sum();
}

// y += c[0] x[0] + c[1] x[1] + ..
HWY_FLATTEN void add_four(float* y, const float (&c)[four], const Four& b, std::size_t n) {
  const V c0 = set(c[0]), c1 = set(c[1]), c2 = set(c[2]), c3 = set(c[3]);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const V low = hn::Add(hn::Mul(c0, at.load(b.x[0])), hn::Mul(c1, at.load(b.x[1])));
    const V high = hn::Add(hn::Mul(c2, at.load(b.x[2])), hn::Mul(c3, at.load(b.x[3])));
    at.store(hn::Add(at.load(y), hn::Add(low, high)), y);
  });
}

HWY_FLATTEN void dots_of_rows(const SomeRows& size, const float* m, const float* right, float* left) {
  for (std::size_t i = 0; i < size.rows; ++i)
    for (std::size_t k = 0; k < size.count; k += four) {
      const Four vectors(right + k * size.columns, size.columns, size.count - k);
      float dots[four];
      four_dots(m + i * size.columns, vectors, size.columns, dots);
      for (std::size_t j = 0; j < vectors.there; ++j) left[(k + j) * size.all_rows + i] = dots[j];
    }
}

HWY_FLATTEN void sums_of_rows(const SomeRows& size, const float* m, const float* left, float* right) {
  for (std::size_t j = 0; j < size.count * size.columns; ++j) right[j] = 0;
  for (std::size_t i = 0; i < size.rows; i += four) {
    const Four rows(m + i * size.columns, size.columns, size.rows - i);
    for (std::size_t k = 0; k < size.count; ++k) {
      float c[four] = {};
      for (std::size_t j = 0; j < rows.there; ++j) c[j] = left[k * size.all_rows + i + j];
      add_four(right + k * size.columns, c, rows, size.columns);
    }
  }
}

HWY_FLATTEN void outer_products(const SomeRows& size, float scale, const float* left, const float* right, float* m) {
  for (std::size_t i = 0; i < size.rows; ++i)
    for (std::size_t k = 0; k < size.count; k += four) {
      const Four vectors(right + k * size.columns, size.columns, size.count - k);
      float c[four] = {};
      for (std::size_t j = 0; j < vectors.there; ++j) c[j] = scale * left[(k + j) * size.all_rows + i];
      add_four(m + i * size.columns, c, vectors, size.columns);
    }
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::codecs {

HWY_EXPORT(dots_of_rows);
HWY_EXPORT(sums_of_rows);
HWY_EXPORT(outer_products);

void rows_by_vectors(const SomeRows& size, const float* m, const float* right, float* left) {
  HWY_DYNAMIC_DISPATCH(dots_of_rows)(size, m, right, left);
}
void vectors_by_rows(const SomeRows& size, const float* m, const float* left, float* right) {
  HWY_DYNAMIC_DISPATCH(sums_of_rows)(size, m, left, right);
}
void add_product(const SomeRows& size, float scale, const float* left, const float* right, float* m) {
  HWY_DYNAMIC_DISPATCH(outer_products)(size, scale, left, right, m);
}

}  // namespace echelon::codecs
#endif
