// Loops over elements in vectors, and the fixed-order sums, for the kernels' .cpp files. Compiled once per target
// (hence Highway's own include guard, and HWY_ATTR on lambdas, without which clang would not inline vectors into them).

#if defined(ECHELON_KERNELS_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_SIMD_INL_H
#undef ECHELON_KERNELS_SIMD_INL_H
#else
#define ECHELON_KERNELS_SIMD_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr std::size_t width = hn::MaxLanes(D());  // floats in a vector: a constant on x86

HWY_INLINE V set(float x) { return hn::Set(D(), x); }

// The first `count` < width elements, zero beyond; nothing beyond is touched.
HWY_INLINE V load_n(const float* p, std::size_t count) {
#if HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(D(), count), D(), p);
#else
  HWY_ALIGN float buffer[width] = {};
  std::memcpy(buffer, p, count * sizeof(float));
  return hn::Load(D(), buffer);
#endif
}

HWY_INLINE void store_n(V v, float* p, std::size_t count) {
#if HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(D(), count), D(), p);
#else
  HWY_ALIGN float buffer[width];
  hn::Store(v, D(), buffer);
  std::memcpy(p, buffer, count * sizeof(float));
#endif
}

// Where a loop stands: loads and stores a vector there, whole or, at the end of a range, what is left.
struct Whole {
  std::size_t i;
  HWY_INLINE V load(const float* p) const { return hn::LoadU(D(), p + i); }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, D(), p + i); }
};
struct Rest {
  std::size_t i, count;
  HWY_INLINE V load(const float* p) const { return load_n(p + i, count); }
  HWY_INLINE void store(V v, float* p) const { store_n(v, p + i, count); }
};

// Calls f(at) for every vector of n elements. Unrolled by hand where a step is so short that the loop would show.
template <int unroll = 1, class F>
HWY_INLINE void for_each_vector(std::size_t n, const F& f) {
  std::size_t i = 0;
  if constexpr (unroll == 4)
    for (; i + 4 * width <= n; i += 4 * width) {
      f(Whole{i});
      f(Whole{i + width});
      f(Whole{i + 2 * width});
      f(Whole{i + 3 * width});
    }
  for (; i + width <= n; i += width) f(Whole{i});
  if (i < n) f(Rest{i, n - i});
}

// `lanes` floats, in as many vectors as the target needs: what makes a sum independent of the target's width.
template <std::size_t lanes>
struct Wide {
  static constexpr std::size_t count = lanes / width;
  V v[count];

  static HWY_INLINE Wide zero() {
    Wide w;
    for (std::size_t k = 0; k < count; ++k) w.v[k] = hn::Zero(D());
    return w;
  }
  static HWY_INLINE Wide load(const float* p) {
    Wide w;
    for (std::size_t k = 0; k < count; ++k) w.v[k] = hn::LoadU(D(), p + k * width);
    return w;
  }
  HWY_INLINE void store(float* p) const {
    for (std::size_t k = 0; k < count; ++k) hn::StoreU(v[k], D(), p + k * width);
  }
  HWY_INLINE void add(const Wide& other) {
    for (std::size_t k = 0; k < count; ++k) v[k] = hn::Add(v[k], other.v[k]);
  }
  // Lane i + lane (i + lanes/2), and so on down to one: the same pairs for every width.
  HWY_INLINE float sum() const {
    Wide w = *this;
    for (std::size_t half = count / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) w.v[k] = hn::Add(w.v[k], w.v[k + half]);
    return hn::GetLane(hn::SumOfLanes(D(), w.v[0]));
  }
};

inline constexpr std::size_t sum_lanes = 32, sum_block = 4096;

// The sum of term(at) over n elements in reduce.h's order. What term returns past the end of the range is ignored.
template <class Term>
HWY_INLINE double blocked_sum(std::size_t n, const Term& term) {
  using W = Wide<sum_lanes>;
  double total = 0;
  for (std::size_t begin = 0; begin < n; begin += sum_block) {
    const std::size_t end = begin + sum_block < n ? begin + sum_block : n;
    W partial = W::zero();
    std::size_t i = begin;
    for (; i + sum_lanes <= end; i += sum_lanes)
      for (std::size_t k = 0; k < W::count; ++k) partial.v[k] = hn::Add(partial.v[k], term(Whole{i + k * width}));
    for (std::size_t k = 0; k < W::count && i < end; ++k, i += width) {
      if (i + width <= end) {
        partial.v[k] = hn::Add(partial.v[k], term(Whole{i}));
      } else {
        const V last = term(Rest{i, end - i});
        partial.v[k] = hn::Add(partial.v[k], hn::IfThenElseZero(hn::FirstN(D(), end - i), last));
      }
    }
    total += static_cast<double>(partial.sum());
  }
  return total;
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
