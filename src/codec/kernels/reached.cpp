#include "codec/kernels/reached.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/reached.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "codec/wire/word_moves.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using Words = hn::Rebind<std::uint16_t, DI>;
using WordBytes = hn::Repartition<std::uint8_t, Words>;

// load(at) gives the numbers (zeros past the end of the range), and leave(at, numbers) gets what is left of them.
template <class Load, class Leave>
HWY_INLINE std::size_t find(std::size_t n, float threshold, std::size_t first, std::uint16_t* entries, const Load& load,
                            const Leave& leave) {
  const V size = set(threshold), sign = hn::SignBit(D());
  const VI least = hn::Set(DI(), std::bit_cast<std::int32_t>(threshold) - 1);  // magnitudes' bits order as they do
  const VI lanes = hn::Iota(DI(), 0);
  std::uint16_t* to = entries;
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const V x = load(at), minus = hn::And(x, sign);
    const auto there = hn::Gt(hn::BitCast(DI(), hn::AndNot(sign, x)), least);
    leave(at, hn::Sub(x, hn::IfThenElseZero(hn::RebindMask(D(), there), hn::Or(size, minus))));
    const VI places = hn::Add(hn::Set(DI(), static_cast<std::int32_t>(first + at.i)), lanes);
    const VI flags = hn::BitCast(DI(), hn::ShiftRight<16>(hn::BitCast(hn::RebindToUnsigned<D>(), minus)));
    std::uint8_t bits[8];
    hn::StoreMaskBits(DI(), there, bits);
    const auto words = hn::BitCast(WordBytes(), hn::DemoteTo(Words(), hn::Or(places, flags)));
    hn::StoreU(hn::TableLookupBytes(words, hn::LoadU(WordBytes(), word_moves.together[bits[0]])), WordBytes(),
               reinterpret_cast<std::uint8_t*>(to));
    to += std::popcount(bits[0]);
  });
  return static_cast<std::size_t>(to - entries);
}

HWY_FLATTEN std::size_t find_only(const float* x, std::size_t n, float threshold, std::size_t first,
                                  std::uint16_t* entries) {
  return find(
      n, threshold, first, entries, [&](auto at) HWY_ATTR { return at.load(x); }, [](auto, V) HWY_ATTR {});
}
HWY_FLATTEN std::size_t find_and_take(float* x, std::size_t n, float threshold, std::size_t first,
                                      std::uint16_t* entries) {
  return find(
      n, threshold, first, entries, [&](auto at) HWY_ATTR { return at.load(x); },
      [&](auto at, V left) HWY_ATTR { at.store(left, x); });
}
HWY_FLATTEN std::size_t add_find_and_take(float* x, const float* more, std::size_t n, float threshold,
                                          std::size_t first, std::uint16_t* entries) {
  return find(
      n, threshold, first, entries, [&](auto at) HWY_ATTR { return hn::Add(at.load(x), at.load(more)); },
      [&](auto at, V left) HWY_ATTR { at.store(left, x); });
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace echelon::codecs {

HWY_EXPORT(find_only);
HWY_EXPORT(find_and_take);
HWY_EXPORT(add_find_and_take);

std::size_t reached(std::span<const float> x, float threshold, std::size_t first, std::uint16_t* entries) {
  return HWY_DYNAMIC_DISPATCH(find_only)(x.data(), x.size(), threshold, first, entries);
}
std::size_t take_reached(std::span<float> x, float threshold, std::size_t first, std::uint16_t* entries) {
  return HWY_DYNAMIC_DISPATCH(find_and_take)(x.data(), x.size(), threshold, first, entries);
}
std::size_t add_and_take_reached(std::span<float> x, const float* more, float threshold, std::size_t first,
                                 std::uint16_t* entries) {
  return HWY_DYNAMIC_DISPATCH(add_find_and_take)(x.data(), more, x.size(), threshold, first, entries);
}

}  // namespace echelon::codecs
#endif
