#include "codec/kernels/both_sides.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/both_sides.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

HWY_FLATTEN std::size_t find_far(const float* x, std::size_t n, float scale, std::uint32_t above, std::uint32_t below,
                                 std::uint32_t first, std::uint32_t* places, float* numbers, Sides& counts) {
  const V factor = set(scale), zero = hn::Zero(D());
  const VI high = hn::Set(DI(), static_cast<std::int32_t>(above - 1));
  const VI low = hn::Set(DI(), static_cast<std::int32_t>(below - 1)), size = hn::Set(DI(), 0x7FFFFFFF);
  VI more = hn::Zero(DI()), less = hn::Zero(DI());  // minus how many are above zero, and below
  std::size_t count = 0;
  const auto look = [&](V v) HWY_ATTR {
    const VI bits = hn::BitCast(DI(), v);
    more = hn::Add(more, hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Gt(v, zero))));
    less = hn::Add(less, hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Lt(v, zero))));
    std::uint8_t found[8];
    hn::StoreMaskBits(DI(), hn::Gt(hn::And(bits, size), hn::IfNegativeThenElse(bits, low, high)), found);
    return static_cast<std::uint32_t>(found[0]);
  };
  const auto keep = [&](std::size_t i, std::uint32_t found) HWY_ATTR {
    for (; found != 0; found &= found - 1) {
      const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(found));
      places[count] = first + static_cast<std::uint32_t>(at);
      numbers[count++] = x[at] * scale;
    }
  };
  constexpr std::size_t together = 32;
  std::size_t i = 0;
  for (; i + together <= n; i += together) {
    std::uint32_t found = 0;
    unrolled<together / width>(
        [&](auto k) HWY_ATTR { found |= look(hn::Mul(hn::LoadU(D(), x + i + k * width), factor)) << (k * width); });
    keep(i, found);
  }
  for (; i < n; i += width)
    keep(i, look(hn::Mul(n - i < width ? load_n(x + i, n - i) : hn::LoadU(D(), x + i), factor)));
  counts.above += static_cast<std::uint32_t>(-hn::GetLane(hn::SumOfLanes(DI(), more)));
  counts.below += static_cast<std::uint32_t>(-hn::GetLane(hn::SumOfLanes(DI(), less)));
  return count;
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/error.h"

namespace echelon::codecs {

HWY_EXPORT(find_far);

std::size_t far_from_zero(std::span<const float> x, float scale, std::uint32_t above, std::uint32_t below,
                          std::uint32_t first, std::uint32_t* places, float* numbers, Sides& counts) {
  invariant(above > 0 && below > 0 && x.size() < (std::size_t{1} << 31), "zeros are never looked for");
  return HWY_DYNAMIC_DISPATCH(find_far)(x.data(), x.size(), scale, above, below, first, places, numbers, counts);
}

}  // namespace echelon::codecs
#endif
