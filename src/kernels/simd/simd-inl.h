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
#include <type_traits>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr std::size_t width = hn::MaxLanes(D());  // floats in a vector: a constant on x86

HWY_INLINE V set(float x) { return hn::Set(D(), x); }

// The first `count` < width elements, zero beyond; nothing beyond is touched.
HWY_INLINE V load_n(const float* p, std::size_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(D(), count), D(), p);
#else
  HWY_ALIGN float buffer[width] = {};
  std::memcpy(buffer, p, count * sizeof(float));
  return hn::Load(D(), buffer);
#endif
}

HWY_INLINE void store_n(V v, float* p, std::size_t count) {
#if HWY_TARGET <= HWY_AVX2
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
  static constexpr std::size_t count = width;
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

// Calls f(0), f(1), ... f(n - 1) with compile-time indices: arrays of vectors indexed so stay in registers.
template <auto n, typename Function>
HWY_INLINE void unrolled(const Function& f) {
  [&]<decltype(n)... i>(std::integer_sequence<decltype(n), i...>) HWY_ATTR {
    (f(std::integral_constant<decltype(n), i>()), ...);
  }
  (std::make_integer_sequence<decltype(n), n>());
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
    V folded[count];  // vector by vector: a copy of the whole struct would go through memory
    for (std::size_t k = 0; k < count; ++k) folded[k] = v[k];
    for (std::size_t half = count / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) folded[k] = hn::Add(folded[k], folded[k + half]);
    return hn::GetLane(hn::SumOfLanes(D(), folded[0]));
  }
};

// A sum over a row in the order of vectors of eight (or of what a narrower target has), whatever the target's are.
class SumOfEights {
 public:
  HWY_INLINE SumOfEights() : sum_(hn::Zero(tag)) {}
  // Adds the vector x, of which only the first `count` numbers need to be there.
  template <class Vec>
  HWY_INLINE void add(Vec x, std::size_t count) {
    if constexpr (width == 16) {
      sum_ = hn::Add(sum_, hn::LowerHalf(tag, x));
      if (count > 8) sum_ = hn::Add(sum_, hn::UpperHalf(tag, x));
    } else {
      sum_ = hn::Add(sum_, x);
    }
  }
  // The same with a * b in the place of x, in one rounding.
  template <class Vec>
  HWY_INLINE void add_product(Vec a, Vec b, std::size_t count) {
    if constexpr (width == 16) {
      sum_ = hn::MulAdd(hn::LowerHalf(tag, a), hn::LowerHalf(tag, b), sum_);
      if (count > 8) sum_ = hn::MulAdd(hn::UpperHalf(tag, a), hn::UpperHalf(tag, b), sum_);
    } else {
      sum_ = hn::MulAdd(a, b, sum_);
    }
  }
  HWY_INLINE float total() const { return hn::GetLane(hn::SumOfLanes(tag, sum_)); }

 private:
  static constexpr hn::CappedTag<float, 8> tag{};
  hn::Vec<hn::CappedTag<float, 8>> sum_;
};

inline constexpr std::size_t sum_lanes = 32, sum_block = 4096;

// Several sums over n elements in one go, each in reduce.h's order: term(at, v) sets v[0], v[1], ... to what the
// elements there contribute; what it sets past the end of the range is ignored.
template <std::size_t terms, class Term>
HWY_INLINE void blocked_sums(std::size_t n, const Term& term, double (&total)[terms]) {
  using W = Wide<sum_lanes>;
  for (std::size_t begin = 0; begin < n; begin += sum_block) {
    const std::size_t end = begin + sum_block < n ? begin + sum_block : n;
    W partial[terms];
    for (std::size_t t = 0; t < terms; ++t) partial[t] = W::zero();
    V v[terms];
    std::size_t i = begin;
    for (; i + sum_lanes <= end; i += sum_lanes)
      unrolled<W::count>([&](auto k) HWY_ATTR {
        term(Whole{i + k * width}, v);
        for (std::size_t t = 0; t < terms; ++t) partial[t].v[k] = hn::Add(partial[t].v[k], v[t]);
      });
    if (i < end)
      unrolled<W::count>([&](auto k) HWY_ATTR {
        const std::size_t at = i + k * width;
        if (at >= end) return;
        if (at + width <= end)
          term(Whole{at}, v);
        else
          term(Rest{at, end - at}, v);
        const auto inside = hn::FirstN(D(), end - at);
        for (std::size_t t = 0; t < terms; ++t)
          partial[t].v[k] = hn::Add(partial[t].v[k], hn::IfThenElseZero(inside, v[t]));
      });
    for (std::size_t t = 0; t < terms; ++t) total[t] += static_cast<double>(partial[t].sum());
  }
}

// One sum; term(at) returns what the elements contribute.
template <class Term>
HWY_INLINE double blocked_sum(std::size_t n, const Term& term) {
  double total[1] = {};
  blocked_sums(
      n, [&](auto at, V(&v)[1]) HWY_ATTR { v[0] = term(at); }, total);
  return total[0];
}

// How many rows of `cols` floats a kernel takes through its phases together: while one row's sum is being folded, the
// next row's elements keep the processor busy. Short rows only, so that they stay in the first-level cache.
inline constexpr std::size_t most_rows_together = 4;
HWY_INLINE std::size_t rows_together(std::size_t cols) { return cols <= 1024 ? most_rows_together : 1; }

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
