#include "collective/combine.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/combine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace echelon::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Min {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Min(a, b);
  }
};
struct Max {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};

template <typename T, class F>
HWY_INLINE void each(T* dst, const T* a, const T* b, std::size_t n, F f) {
  const hn::ScalableTag<T> d;
  const std::size_t width = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    const auto x0 = f(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    const auto x1 = f(hn::LoadU(d, a + i + width), hn::LoadU(d, b + i + width));
    const auto x2 = f(hn::LoadU(d, a + i + 2 * width), hn::LoadU(d, b + i + 2 * width));
    const auto x3 = f(hn::LoadU(d, a + i + 3 * width), hn::LoadU(d, b + i + 3 * width));
    hn::StoreU(x0, d, dst + i);
    hn::StoreU(x1, d, dst + i + width);
    hn::StoreU(x2, d, dst + i + 2 * width);
    hn::StoreU(x3, d, dst + i + 3 * width);
  }
  for (; i + width <= n; i += width) hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, dst + i);
  if (i < n) {  // the rest, through a vector of their own: no byte beyond is touched
    HWY_ALIGN T left[hn::MaxLanes(d)] = {}, right[hn::MaxLanes(d)] = {};
    std::memcpy(left, a + i, (n - i) * sizeof(T));
    std::memcpy(right, b + i, (n - i) * sizeof(T));
    hn::Store(f(hn::Load(d, left), hn::Load(d, right)), d, left);
    std::memcpy(dst + i, left, (n - i) * sizeof(T));
  }
}

template <typename T>
HWY_FLATTEN void reduce(Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b, std::size_t n) {
  auto* d = reinterpret_cast<T*>(dst);
  const auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  if (reduction == Reduction::min)
    each(d, x, y, n, Min());
  else if (reduction == Reduction::max)
    each(d, x, y, n, Max());
  else
    each(d, x, y, n, Sum());
}

void combine(ElementType type, Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t n) {
  switch (type) {
    case ElementType::float32: return reduce<float>(reduction, dst, a, b, n);
    case ElementType::float64: return reduce<double>(reduction, dst, a, b, n);
    case ElementType::int32: return reduce<std::int32_t>(reduction, dst, a, b, n);
    case ElementType::int64: return reduce<std::int64_t>(reduction, dst, a, b, n);
    case ElementType::bytes: break;
  }
}

}  // namespace
}  // namespace echelon::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "base/error.h"

namespace echelon {

HWY_EXPORT(combine);

void combine(ElementType type, Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t n) {
  invariant(type != ElementType::bytes, "bytes are never added");
  HWY_DYNAMIC_DISPATCH(combine)(type, reduction, dst, a, b, n);
}

namespace {

template <typename T, class F>
void each(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) {
    T x, y;
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    x = f(x, y);
    std::memcpy(dst + i * sizeof(T), &x, sizeof(T));
  }
}

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // wraps around instead of being undefined
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename F>
void with_type(ElementType type, F f) {
  switch (type) {
    case ElementType::float32: return f(float{});
    case ElementType::float64: return f(double{});
    case ElementType::int32: return f(std::int32_t{});
    case ElementType::int64: return f(std::int64_t{});
    case ElementType::bytes: break;
  }
}

}  // namespace

void ref_combine(ElementType type, Reduction reduction, std::byte* dst, const std::byte* a, const std::byte* b,
                 std::size_t n) {
  with_type(type, [&]<typename T>(T) {
    if (reduction == Reduction::min)
      each<T>(dst, a, b, n, [](T x, T y) { return std::min(x, y); });
    else if (reduction == Reduction::max)
      each<T>(dst, a, b, n, [](T x, T y) { return std::max(x, y); });
    else
      each<T>(dst, a, b, n, [](T x, T y) { return plus(x, y); });
  });
}

void divide(ElementType type, std::byte* data, std::size_t n, int by) {
  with_type(type, [&]<typename T>(T) {
    each<T>(data, data, data, n, [by](T x, T) { return static_cast<T>(x / static_cast<T>(by)); });
  });
}

}  // namespace echelon
#endif
